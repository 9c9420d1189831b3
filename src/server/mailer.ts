// Mail of a running server; loaded where it is configured. It looks for what is to be told (limits, statements, alerts) and
// adds that to the books, once, and it sends what waits there. Of several gateways one looks, and all send: who takes a mail has
// it for a while. A mail that the server took just before we died goes out again, with the same Message-ID.
import { createHash } from "node:crypto";
import { type MailDetails, mailedToken, Mails, sealClaim, wants } from "../account/people/mails.ts";
import { dayOf, firstDayOfMonth } from "../account/money/quota.ts";
import type { AccountRecord, Mail } from "../account/records.ts";
import type { Accounting } from "../books/accounting.ts";
import type { MailConfig } from "../config/mail.ts";
import type { OperatorAlert } from "../console/api/server.ts";
import type { Catalog } from "../core/catalog.ts";
import type { Clock } from "../core/clock.ts";
import { isExpected } from "../core/expected-error.ts";
import type { Log } from "../core/log.ts";
import { type MailKind, mailLanguageOf, type OptionalMailKind, optionalMailKinds } from "../core/mail.ts";
import type { UsageQueries } from "../account/usage-queries.ts";
import type { MailQueries, RequestLogQueries, UsedPart } from "../core/request-log.ts";
import type { Ms } from "../core/types.ts";
import { dayMs, hourMs } from "../core/units.ts";
import { webhookRetriesMs } from "../notices/deliveries.ts";
import { alertIn, type Letter, readTemplates, textIn, type Templates, written } from "../notices/letter.ts";
import { MailServer, type SmtpOutcome } from "../notices/smtp.ts";
import { statementCsv, statementOf } from "../office/verbs/statement.ts";

const mailLookMs: Ms = 2_000;
const tellLookMs: Ms = 15_000;
/** A mail server has 90 s for a mail. */
const leaseMs: Ms = 2 * 60_000;
const giveUpMs: Ms = dayMs;
/** Of a mail that is on its way when the server stops, or has another configuration. */
const closeMs: Ms = 5_000;
/** So many mails after each other that are each refused for now say something of the mail server. */
const refusedMax = 10;
/** A statement is sent in the first days of the next month, or not at all. */
const statementDaysMax = 7;
const tableRowsMax = 30;
const keptMs = { day: 3 * dayMs, month: 35 * dayMs, purchase: 400 * dayMs } as const;
/** An alert that was told is known by a mail to nobody. */
const toldAlert = "alert";
const toldAlertKeptMs: Ms = 10 * 365 * dayMs;

export type MailerParts = Readonly<{
  config: MailConfig;
  /** Of the console. */
  url: string;
  secret: Uint8Array;
  accounting: Pick<Accounting, "office" | "finds">;
  requestLog: MailQueries & RequestLogQueries;
  usage: Pick<UsageQueries, "report">;
  catalog: Pick<Catalog, "plans">;
  alerts: Readonly<{ list(): Promise<readonly OperatorAlert[]> }>;
  clock: Clock;
  log: Log;
}>;

type Made = Readonly<{ letter: Letter; attachment: Readonly<{ filename: string; content: string }> | null }>;

export class Mailer {
  readonly #parts: MailerParts;
  readonly #timer: Timer;
  #looking: Promise<void> | null = null;
  #closed = false;
  #toldAt: Ms = -Infinity;
  #tidiedAt: Ms = -Infinity;
  /** No mail is tried before then: the server took none. */
  #pausedUntil: Ms = -Infinity;
  #failures = 0;
  #refused = 0;
  /** What became of a mail, until the books know it: nothing else is sent before, else that one might go out again. */
  #unnoted: Mail | null = null;
  readonly #cut = new AbortController();
  /** The month whose statements are all on their way. */
  #stated = "";
  #alertsBefore: ReadonlySet<string> | null = null;
  readonly #warned = new Set<string>();

  constructor(parts: MailerParts) {
    this.#parts = parts;
    this.#timer = setInterval(() => void this.look(), mailLookMs);
    this.#timer.unref();
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#timer);
    const patience = setTimeout(() => this.#cut.abort(), closeMs);
    await this.#looking;
    clearTimeout(patience);
  }

  /** Never rejects. */
  look(): Promise<void> {
    return (this.#looking ??= this.#look().finally(() => (this.#looking = null)));
  }

  async #look(): Promise<void> {
    try {
      await this.#tell();
      await this.#send();
    } catch (thrown) {
      this.#warnOnce("mail cannot be looked for", (thrown as Error).message);
    }
  }

  // -------------------------------------------------------------- what is to be told

  async #tell(): Promise<void> {
    const { accounting, requestLog, catalog, clock } = this.#parts;
    const [now, wall] = [clock.monotonic(), clock.wall()];
    if (now - this.#toldAt < tellLookMs) return;
    this.#toldAt = now;
    if ((await accounting.finds?.lease("mail", 4 * tellLookMs)) === false) return;
    const plans = Object.entries(catalog.plans).flatMap(([plan, { tokensPerDay, unlimited }]) =>
      unlimited || tokensPerDay === 0 ? [] : [[plan, tokensPerDay] as const],
    );
    for (const used of await requestLog.toTell(dayOf(wall), firstDayOfMonth(wall), plans)) await this.#tellUsed(used);
    await this.#tellStatements(wall);
    await this.#tellAlerts();
    if (now - this.#tidiedAt < hourMs) return;
    this.#tidiedAt = now;
    await accounting.office.change(async ({ mails }) => new Mails(mails).forgetOld());
  }

  #tellUsed({ once, account, member, ...used }: UsedPart): Promise<void> {
    const kind: OptionalMailKind = used.what === "end_user" ? "end_user_limits" : "limits";
    return this.#parts.accounting.office.change(async (unit) => {
      const of = await unit.accounts.record(account);
      const details = { ...used, account: of?.email ?? "" };
      await new Mails(unit.mails).tell(kind, once, member ?? account, details, unit.now + keptMs[used.period]);
    });
  }

  async #tellStatements(wall: Ms): Promise<void> {
    const { accounting, requestLog, config } = this.#parts;
    const today = Temporal.Instant.fromEpochMilliseconds(wall).toZonedDateTimeISO(config.timeZone);
    const month = today.toPlainDate().toPlainYearMonth().subtract({ months: 1 }).toString();
    if (today.day > statementDaysMax || this.#stated === month) return;
    const begins = today.with({ day: 1 }).startOfDay().epochMilliseconds;
    const accounts = await requestLog.untold("statement ", ` ${month}`, begins);
    if (accounts.length === 0) this.#stated = month;
    for (const account of accounts) {
      await accounting.office.change(async ({ mails, now }) =>
        new Mails(mails).tell(
          "statement",
          `statement ${account} ${month}`,
          account,
          { month, of: account },
          now + 40 * dayMs,
        ),
      );
    }
  }

  /** Those that begin and those that end, each in two looks after each other. */
  async #tellAlerts(): Promise<void> {
    const { accounting, alerts } = this.#parts;
    const found = new Map((await alerts.list()).map((alert) => [`${toldAlert} ${alert.kind} ${alert.about}`, alert]));
    const before = this.#alertsBefore;
    this.#alertsBefore = new Set(found.keys());
    if (before === null) return;
    await accounting.office.change(async ({ mails: parts, accounts, teams, now }) => {
      const operators = await Promise.all((await teams.records.operators()).map((id) => accounts.record(id)));
      const mails = new Mails(parts);
      const began: string[] = [];
      for (const [once, { kind, values }] of found) {
        const alert = JSON.stringify({ kind, values });
        const told = { once, kind: toldAlert as MailKind, account: null, details: { alert }, isTold: true };
        if (before.has(once) && (await mails.add({ ...told, keptUntil: now + toldAlertKeptMs }))) began.push(alert);
      }
      const over = (await parts.records.mailsOfKind(toldAlert)).filter(
        ({ once }) => !found.has(once) && !before.has(once),
      );
      const ended = over.map(({ details }) => String((JSON.parse(details) as MailDetails)["alert"]));
      for (const { once } of over) mails.forget(once);
      if (began.length + ended.length === 0) return;
      const details = { began: began.join("\n"), ended: ended.join("\n") };
      for (const operator of operators) {
        if (operator === null || !wants(operator, "alerts")) continue;
        const of = { once: `alerts ${now} for ${operator.id}`, kind: "alerts", account: operator.id } as const;
        await mails.add({ ...of, details, keptUntil: now + dayMs });
      }
    });
  }

  // -------------------------------------------------------------- what waits

  async #send(): Promise<void> {
    const { accounting, clock, config } = this.#parts;
    let server: MailServer | null = null;
    if (this.#unnoted !== null) await this.#keep(this.#unnoted);
    try {
      while (!this.#closed && clock.monotonic() >= this.#pausedUntil) {
        const [due] = await accounting.office.read(async ({ mails, now }) => mails.records.dueMails(now, 1));
        if (due === undefined) return;
        const [mail] = await accounting.office.change(({ mails }) => new Mails(mails).take(1, leaseMs));
        if (mail === undefined) continue; // another gateway has it
        server ??= new MailServer(config);
        await this.#deliver(server, mail);
      }
    } finally {
      server?.close();
    }
  }

  async #deliver(server: MailServer, mail: Mail): Promise<void> {
    const { accounting, config, clock, url, secret } = this.#parts;
    const of = mail.account;
    const record = of === null ? null : await accounting.office.read(({ accounts }) => accounts.record(of));
    const to = mail.address ?? record?.mailAddress ?? null;
    const kind = mail.kind as MailKind;
    const isWanted = !isOptional(kind) || (record !== null && wants(record, kind));
    const made = to === null || !isWanted ? null : await this.#made(mail, record);
    if (made === null) return this.#note(mail, null, null);
    const { until } = JSON.parse(mail.details) as { until?: Ms };
    if (until !== undefined && until <= clock.wall())
      return this.#note(mail, "its link ended before it was sent", null);
    const what = { account: record?.id ?? 0, what: kind, until: 0 };
    const token = isOptional(kind) ? sealClaim(secret, what) : null;
    const letter = { ...made.letter, unsubscribe: token === null ? null : `${url}/unsubscribe#${token}` };
    const sent = {
      ...written(letter, this.#templates()),
      to: to!,
      messageId: messageId(mail, config),
      unsubscribe: token === null ? null : `${url}/console/mail/unsubscribe?of=${token}`,
      attachment: made.attachment,
    };
    await this.#settle(mail, await server.send(sent, this.#cut.signal));
  }

  async #settle(mail: Mail, { answer, problem }: SmtpOutcome): Promise<void> {
    const { clock, log } = this.#parts;
    if (problem === null) {
      this.#failures = this.#refused = 0;
      return this.#note(mail, null, null);
    }
    const pauseOf = (tries: number): Ms => webhookRetriesMs[Math.min(tries, webhookRetriesMs.length - 1)]!;
    this.#refused = problem === "mail now" ? this.#refused + 1 : 0;
    if (problem === "server" || this.#refused >= refusedMax) {
      if (this.#failures === 0) log("warn", "the mail server took no mail", { reason: answer });
      this.#pausedUntil = clock.monotonic() + pauseOf(this.#failures);
      this.#failures += 1;
    }
    const dueAt = clock.wall() + pauseOf(mail.tries);
    const isOver = problem === "mail" || dueAt > mail.createdAt + giveUpMs;
    if (isOver) log("error", "a mail was given up", { kind: mail.kind, account: mail.account, reason: answer });
    await this.#note(mail, answer, isOver ? null : dueAt);
  }

  /** `dueAt` null: it is done with. */
  #note(mail: Mail, problem: string | null, dueAt: Ms | null): Promise<void> {
    const { clock } = this.#parts;
    const sentAt = dueAt === null ? clock.wall() : null;
    return this.#keep({ ...mail, tries: mail.tries + 1, problem, dueAt, sentAt });
  }

  async #keep(mail: Mail): Promise<void> {
    this.#unnoted = mail;
    await this.#parts.accounting.office.change(async ({ mails }) => new Mails(mails).note(mail));
    this.#unnoted = null;
  }

  // -------------------------------------------------------------- what it says

  /** Null: there is nothing to say anymore. */
  async #made(mail: Mail, record: AccountRecord | null): Promise<Made | null> {
    const { config, url, secret } = this.#parts;
    const details = JSON.parse(mail.details) as MailDetails;
    const kind = mail.kind as MailKind;
    const language = mailLanguageOf(record?.language ?? String(details["language"] ?? "")) ?? config.language;
    const values: Record<string, string> = { server: serverName(url), account: record?.email ?? "" };
    for (const [name, value] of Object.entries(details)) values[name] = String(value ?? "");
    const number = (value: unknown): string => Number(value).toLocaleString(language);
    if (details["until"] !== undefined) {
      const form = { dateStyle: "long", timeStyle: "short", timeZone: config.timeZone } as const;
      values["until"] =
        `${new Intl.DateTimeFormat(language, form).format(Number(details["until"]))} (${config.timeZone})`;
    }
    const letter = (link: string, more: Partial<Letter> = {}): Letter => {
      return { kind, language, values, link: url + link, unsubscribe: null, ...more };
    };
    const alone = (found: Letter): Made => ({ letter: found, attachment: null });
    switch (kind) {
      case "invitation":
      case "team_invitation":
        return alone(letter(`/join#${mailedToken(secret, mail)}`));
      case "password":
        return alone(letter(`/set-password#${mailedToken(secret, mail)}`));
      case "address": {
        if (record === null || mail.address === null) return null;
        const claim = { account: record.id, what: mail.address, until: Number(details["until"]) };
        return alone(letter(`/confirm-mail#${sealClaim(secret, claim, record.mailAddress ?? "")}`));
      }
      case "limits":
      case "end_user_limits":
        for (const name of ["used", "most"]) values[name] = number(details[name]);
        values["what"] = textIn(language, `limits.${values["what"]}_${values["period"]}`, values);
        return alone(letter("/usage"));
      case "alerts": {
        const lists = (["began", "ended"] as const).flatMap((what) => {
          const lines = (values[what] ?? "")
            .split("\n")
            .filter(Boolean)
            .map((line) => alertIn(language, JSON.parse(line)));
          values[what] = lines.join("\n");
          return lines.length === 0 ? [] : [{ heading: textIn(language, `alerts.${what}`), lines }];
        });
        const isOver = values["began"] === "";
        values["first"] = lists[0]?.lines[0]?.slice(0, 120) ?? "";
        values["subject"] = textIn(language, isOver ? "alerts.subject_ended" : "alerts.subject", values);
        return alone(letter("/operator", { lists }));
      }
      case "statement":
        return this.#statement(details, letter("/reports"));
      case "test":
        return alone(letter("/"));
      default:
        return kind satisfies never;
    }
  }

  async #statement({ month, of }: MailDetails, { values, ...letter }: Letter): Promise<Made | null> {
    const { accounting, requestLog, usage, config } = this.#parts;
    const { office } = accounting;
    const account = await office.read(({ accounts }) => accounts.record(Number(of)));
    if (account === null) return null;
    const asked = { month: String(month), time_zone: config.timeZone };
    const made = await statementOf({ office, requestLog, usage }, account, asked).catch((thrown: unknown) => {
      if (!isExpected(thrown)) throw thrown;
      return statementOf({ office, requestLog, usage }, account, { month: asked.month }); // of a zone, folded days would be cut
    });
    if (made.lines.length + made.credits.length === 0) return null;
    const { language } = letter;
    const say = (what: string, more = {}): string => textIn(language, `statement.${what}`, more);
    const number = (value: number): string => value.toLocaleString(language);
    const money = (usd: number): string => usd.toLocaleString(language, { style: "currency", currency: "USD" });
    const cells = ({ requests, billed, cost_usd }: typeof made.total) => [
      number(requests),
      number(billed),
      money(cost_usd),
    ];
    const rows = made.lines.slice(0, tableRowsMax).map((line) => [line.model, ...cells(line)]);
    const more = made.lines.length - rows.length;
    if (more > 0) rows.push([say("more", { count: number(more) }), "", "", ""]);
    const { tokens, usd } = made.credit_total;
    const total = [say("total"), ...cells(made.total)];
    const foot = tokens > 0 ? [total, [say("bought"), "", number(tokens), money(usd)]] : [total];
    const head = [say("model"), say("requests"), say("tokens"), say("usd")];
    const monthIn = { year: "numeric", month: "long", timeZone: "UTC" } as const;
    const name = new Date(`${made.month}-01`).toLocaleDateString(language, monthIn);
    const [, requests = "", balance = "", dollars = ""] = total;
    const sums = { account: made.account, month: name, zone: made.time_zone, requests, tokens: balance, usd: dollars };
    return {
      letter: { ...letter, values: { ...values, ...sums }, table: { head, rows, foot } },
      attachment: { filename: `statement-${made.month}.csv`, content: statementCsv(made) },
    };
  }

  /** Read for each mail, so that a template is tried as it is saved. */
  #templates(): Templates | null {
    const { templates } = this.#parts.config;
    if (templates === null) return null;
    try {
      const read = readTemplates(templates);
      for (const [file, of] of read)
        if ("problem" in of) this.#warnOnce("a template is not used", `${file} ${of.problem}`);
      return read;
    } catch (thrown) {
      this.#warnOnce("the folder of templates cannot be read", (thrown as Error).message);
      return null;
    }
  }

  #warnOnce(message: string, reason: string): void {
    if (this.#warned.size > 100) this.#warned.clear();
    if (this.#warned.has(message + reason)) return;
    this.#warned.add(message + reason);
    this.#parts.log("warn", message, { reason });
  }
}

const isOptional = (kind: MailKind): kind is OptionalMailKind =>
  (optionalMailKinds as readonly string[]).includes(kind);

const serverName = (url: string): string => `Tollgate (${new URL(url).host})`;

const messageId = ({ once, createdAt }: Pick<Mail, "once" | "createdAt">, { from }: MailConfig): string =>
  `<${createHash("sha256").update(`${once} ${createdAt}`).digest("hex").slice(0, 40)}@${from.address.split("@")[1]}>`;

/** Sends one at once, beside all others. Throws where the file of certificates cannot be read. */
export async function sendTest(config: MailConfig, url: string, to: string): Promise<SmtpOutcome> {
  const server = new MailServer(config);
  const { language, templates } = config;
  const values = { server: serverName(url) };
  const letter = { kind: "test", language, values, link: `${url}/`, unsubscribe: null } as const;
  const test = { once: crypto.randomUUID(), createdAt: 0 };
  const mail = { ...written(letter, templates === null ? null : readTemplates(templates)), to };
  try {
    return await server.send({ ...mail, messageId: messageId(test, config), unsubscribe: null, attachment: null });
  } finally {
    server.close();
  }
}
