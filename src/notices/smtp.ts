// Hands mails to the mail server. The only file that knows nodemailer; it is loaded with the first mail.
import { readFileSync } from "node:fs";
import { createTransport } from "nodemailer";
import type { MailConfig } from "../config/mail.ts";
import type { Ms } from "../core/types.ts";

const smtpReachMs: Ms = 10_000;
/** Of its silence. */
const smtpAnswerMs: Ms = 60_000;
/** Of a whole mail: a server that says a byte now and then is never silent. */
const smtpMailMs: Ms = 90_000;

export type SentMail = Readonly<{
  to: string;
  /** The same for each try, so that a receiver knows a repeat. */
  messageId: string;
  subject: string;
  text: string;
  html: string;
  /** Where one POST ends mails of this kind (RFC 8058). */
  unsubscribe: string | null;
  attachment: Readonly<{ filename: string; content: string }> | null;
}>;

/** `problem` null: the server took it. `answer` is what it said, or what kept it from that. */
export type SmtpOutcome = Readonly<{
  answer: string;
  /** The mail will never be taken, or not now; or the server takes none now. */
  problem: "mail" | "mail now" | "server" | null;
}>;

/** For some mails, one after the other; its connection ends with `close`. */
export class MailServer {
  readonly #config: MailConfig;
  readonly #transport;

  /** Throws where the file of certificates cannot be read. */
  constructor(config: MailConfig) {
    const { host, port, isSecure, requiresTls, ca, user, password } = config;
    this.#config = config;
    this.#transport = createTransport({
      host,
      port,
      secure: isSecure,
      requireTLS: requiresTls,
      pool: true,
      maxConnections: 1,
      connectionTimeout: smtpReachMs,
      greetingTimeout: smtpReachMs,
      socketTimeout: smtpAnswerMs,
      disableFileAccess: true,
      disableUrlAccess: true,
      ...(user === null ? {} : { auth: { user, pass: password ?? "" } }),
      tls: { minVersion: "TLSv1.2", ...(ca === null ? {} : { ca: readFileSync(ca, "utf8") }) },
    });
  }

  /** Never rejects. `cancelSignal` lets go of a mail that the server has not taken, or has not said so. */
  async send(
    { to, subject, unsubscribe, attachment, ...mail }: SentMail,
    cancelSignal?: AbortSignal,
  ): Promise<SmtpOutcome> {
    const { from, replyTo } = this.#config;
    const late = AbortSignal.timeout(smtpMailMs);
    try {
      const { response } = await this.#transport.sendMail({
        ...mail,
        signal: cancelSignal === undefined ? late : AbortSignal.any([late, cancelSignal]),
        // Nothing here is parsed: addresses were checked, and stand in no list.
        envelope: { from: from.address, to: [to] },
        to: { name: "", address: to },
        from,
        ...(replyTo === null ? {} : { replyTo }),
        subject: plain(subject),
        headers: { "Auto-Submitted": "auto-generated", ...(unsubscribe === null ? {} : unsubscribing(unsubscribe)) },
        attachments: attachment === null ? [] : [{ ...attachment, contentType: "text/csv; charset=utf-8" }],
      });
      return { answer: response, problem: null };
    } catch (thrown) {
      if (late.aborted) return { answer: lateAnswer, problem: "server" };
      return failed(thrown as SmtpError);
    }
  }

  /** Whether it lets us in, without a mail: null, or what it said. */
  async verify(): Promise<string | null> {
    const late = Bun.sleep(smtpMailMs).then(() => {
      throw new Error(lateAnswer);
    });
    try {
      await Promise.race([this.#transport.verify(), late]);
      return null;
    } catch (thrown) {
      return failed(thrown as SmtpError).answer;
    }
  }

  close(): void {
    this.#transport.close();
  }
}

type SmtpError = Error & Readonly<{ code?: string; command?: string; response?: string; responseCode?: number }>;

function failed({ message, response, responseCode = 0, command }: SmtpError): SmtpOutcome {
  const isOfMail = responseCode >= 422 && (command === "RCPT TO" || command === "DATA"); // 421: it goes away
  const problem = !isOfMail ? "server" : responseCode >= 500 ? "mail" : "mail now";
  return { answer: plain(response ?? message).slice(0, 500), problem };
}

const lateAnswer = `It took longer than ${smtpMailMs / 1000} s`;

const unsubscribing = (url: string) => ({
  "List-Unsubscribe": `<${url}>`,
  "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
});

const plain = (text: string): string => text.replaceAll(/[\p{Cc}\u2028\u2029]+/gu, " ");
