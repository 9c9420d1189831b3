// Hands mails to the mail server. The only file that knows nodemailer; it is loaded with the first mail.
import { readFileSync } from "node:fs";
import { createTransport } from "nodemailer";
import type { MailConfig } from "../config/mail.ts";
import type { Ms } from "../core/types.ts";

const smtpReachMs: Ms = 10_000;
/** Of its answer to anything, the whole mail included. */
const smtpAnswerMs: Ms = 60_000;

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
  /** Whose fault it is: the mail will never be taken, or the server takes none now. */
  problem: "mail" | "server" | null;
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

  /** Never rejects. */
  async send({ to, subject, unsubscribe, attachment, ...mail }: SentMail): Promise<SmtpOutcome> {
    const { from, replyTo } = this.#config;
    try {
      const { response } = await this.#transport.sendMail({
        ...mail,
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
      return failed(thrown as SmtpError);
    }
  }

  /** Whether it lets us in, without a mail: null, or what it said. */
  async verify(): Promise<string | null> {
    try {
      await this.#transport.verify();
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
  const isOfMail = responseCode >= 500 && (command === "RCPT TO" || command === "DATA");
  return { answer: plain(response ?? message).slice(0, 500), problem: isOfMail ? "mail" : "server" };
}

const unsubscribing = (url: string) => ({
  "List-Unsubscribe": `<${url}>`,
  "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
});

const plain = (text: string): string => text.replaceAll(/[\p{Cc}\u2028\u2029]+/gu, " ");
