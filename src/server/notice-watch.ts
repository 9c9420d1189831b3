// Checks every few seconds whether operators should be notified, and posts to the webhooks. It asks what
// is known anyway: nothing of it is in a request's way, and without a webhook it does not look at all.
import { createHash } from "node:crypto";
import { rename, statfs, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Accounting } from "../books/accounting.ts";
import type { Ledger } from "../account/money/ledger.ts";
import type { LoadedAccount } from "../account/money/loaded-account.ts";
import { diskReserveBytes } from "../core/limits.ts";
import { dayMs, bytesText } from "../core/units.ts";
import { assert } from "../core/assert.ts";
import type { WebhookConfig } from "../config/webhooks.ts";
import type { Clock } from "../core/clock.ts";
import { CommandError } from "../core/expected-error.ts";
import type { Log } from "../core/log.ts";
import type { NameOfAccount, Notice, NoticeContent } from "../core/notice.ts";
import type { Soon } from "../core/soon.ts";
import type { AccountId, Ms } from "../core/types.ts";
import type { NodePool } from "../nodes/queue/pool.ts";
import { Deliveries, type Post, type WebhookState } from "../notices/deliveries.ts";
import { NodeWatch } from "../notices/node-watch.ts";
import { toldName } from "../store/folder/data-folder.ts";
import { readWhole } from "../store/folder/whole-file.ts";
import type { Fall } from "../store/postgres/books.ts";
import type { SpentKey } from "../store/postgres/decide.ts";
import type { LedgerWatch } from "../store/verify/verify-watch.ts";
import type { BackupFailure, ScheduledBackups } from "./kept/scheduled-backups.ts";

/** How often nodes, balances, budgets, backups and the ledger's check are examined. */
const noticeLookMs = 5_000;
export const ledgerNoticeIntervalMs = 15 * 60_000;
/** Accounts in memory compared with the threshold in one look: 0.2 ms. */
const noticeAccountsPerLook = 2_000;
export const diskLookMs = 60_000;
/** A notice goes out below this much free space, and can again only after there was `diskWellBytes`. */
export const diskLowBytes = 1024 * 1024 * 1024;
export const diskWellBytes = 1536 * 1024 * 1024;

assert(
  diskReserveBytes < diskLowBytes && diskLowBytes < diskWellBytes,
  "the notice of a full disk comes before backups end",
);

export type NoticeParts = Readonly<{
  dataFolder: string;
  /** Names the server in notices. */
  baseUrl: string;
  pool: Pick<NodePool, "states">;
  accounting: Pick<Accounting, "memory" | "office"> &
    Readonly<{ finds?: Omit<NonNullable<Accounting["finds"]>, "lease"> | null }>;
  /** Its name among several gateways, which each tell of what they see themselves; null: there is one. */
  gateway: string | null;
  watch: Pick<LedgerWatch, "state">;
  backups: Pick<ScheduledBackups, "failure">;
  lowBalanceTokens(): number;
  clock: Clock;
  log: Log;
  /** Seams for tests. */
  post?: Post;
  freeBytes?: (folder: string) => Promise<number>;
}>;

const violationsNamedMax = 5;
/** Longer than a month is. */
const toldBudgetsKeptMs = 32 * dayMs;

/** Loaded with the first notice. */
const postLater: Post = async (...notice) => (await import("../notices/post.ts")).postNotice(...notice);

export class NoticeWatch {
  readonly #parts: NoticeParts;
  readonly #post: Post;
  readonly #deliveries: Deliveries;
  #timer: Timer | null = null;
  readonly #nodes = new NodeWatch();
  #loaded: Iterator<LoadedAccount> | null = null;
  readonly #budgets: ToldBudgets;
  #failure: BackupFailure | null = null;
  #violations: ReadonlySet<string> = new Set();
  #violationsToldAt: Ms = -Infinity;
  #diskLookedAt: Ms = -Infinity;
  #diskToldLow = false;

  constructor(parts: NoticeParts) {
    this.#parts = parts;
    this.#post = parts.post ?? postLater;
    this.#deliveries = new Deliveries({ post: this.#post, clock: parts.clock, log: parts.log });
    this.#budgets = new ToldBudgets(join(parts.dataFolder, toldName), parts.log);
  }

  configure(webhooks: readonly WebhookConfig[]): void {
    this.#deliveries.configure(webhooks);
    const { finds = null } = this.#parts.accounting;
    if (finds !== null) {
      const isWanted = !this.#deliveries.isEmpty;
      finds.batches.onFall = isWanted ? (fall) => this.#lookAtFall(fall) : null;
      finds.batches.onSpent = isWanted ? ({ account, ...spent }) => this.#lookAtSpent(account, spent) : null;
    }
    if (this.#deliveries.isEmpty) this.#rest();
    else if (this.#timer === null) {
      this.#timer = setInterval(() => this.look(), noticeLookMs);
      this.#timer.unref();
    }
  }

  states(): readonly WebhookState[] {
    return this.#deliveries.states();
  }

  /** Tells one webhook that it is tried, at once and once; null, or what went wrong. Throws CommandError: there is none. */
  test(name: string): Promise<string | null> {
    const states = this.states();
    const config = states.find((state) => state.config.name === name)?.config;
    if (config === undefined)
      throw noSuchWebhook(
        name,
        states.map((state) => state.config),
      );
    return this.#post(config, testNotice(config, this.#server, this.#parts.clock.wall()), this.#parts.clock.wall());
  }

  close(): void {
    this.#rest();
    const left = this.#deliveries.close();
    if (left > 0) this.#parts.log("warn", "undelivered notices are lost with this process", { notices: left });
  }

  get #server(): NamedServer {
    const { baseUrl, gateway } = this.#parts;
    return { baseUrl, gateway };
  }

  #rest(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  /** One check of everything; what must be read first is reported a moment later. */
  look(): void {
    this.#lookAtNodes();
    this.#lookAtAccounts();
    this.#lookAtBackups();
    this.#lookAtLedger();
    void this.#lookAtDisk();
  }

  #lookAtNodes(): void {
    const { pool, clock } = this.#parts;
    for (const { event, node, falls } of this.#nodes.look(pool.states(), clock.monotonic())) {
      const { name, since, problem } = node;
      const often = falls > 1 ? ` It went away ${falls} times since the last notice.` : "";
      const text =
        event === "node.down"
          ? `The node ${name} is down: ${problem ?? "it does not answer"}.${often}`
          : `The node ${name} is up again.${often}`;
      const data = { node: name, since: new Date(since).toISOString(), problem, times_away: falls };
      this.#tell(event, `${name} ${since}`, () => ({ text, data }), this.#parts.gateway);
    }
  }

  /** Some of those in memory: the next look goes on behind them. */
  #lookAtAccounts(): void {
    const { accounting, clock } = this.#parts;
    const { memory } = accounting;
    const now = clock.wall();
    if (memory === null) return this.#budgets.write(now);
    for (let seen = 0; seen < noticeAccountsPerLook; seen += 1) {
      this.#loaded ??= memory.loaded();
      const { done, value } = this.#loaded.next();
      if (done === true) {
        this.#loaded = null;
        break;
      }
      this.#lookAtBalance(value, memory, now);
      this.#lookAtKeys(value, now);
    }
    this.#budgets.write(now);
  }

  #lookAtBalance(account: LoadedAccount, ledger: Pick<Ledger, "knownBalance">, now: Ms): void {
    const threshold = this.#parts.lowBalanceTokens();
    if (threshold === 0) return;
    if (account.mostCredit < threshold || account.credit >= threshold) return;
    const balance = ledger.knownBalance(account, now);
    if (balance === null || balance >= threshold) return;
    account.mostCredit = account.credit;
    this.#tellLow(account.id, balance, threshold, now);
  }

  #lookAtFall({ account, before, credit, balance }: Fall): void {
    const threshold = this.#parts.lowBalanceTokens();
    if (threshold === 0 || before < threshold || credit >= threshold || balance >= threshold) return;
    this.#tellLow(account, balance, threshold, this.#parts.clock.wall());
  }

  #tellLow(id: AccountId, balance: number, threshold: number, now: Ms): void {
    this.#tell("balance.low", `${id} ${now}`, async (nameOf) => {
      const email = await nameOf(id);
      const data = { account: id, email, balance_tokens: balance, threshold_tokens: threshold };
      return { text: `The balance of ${email} is low: ${tokens(balance)} are left.`, data };
    });
  }

  #lookAtKeys({ id: account, keys }: LoadedAccount, now: Ms): void {
    if (keys === null) return;
    for (const { id: key, name, spendLimit } of keys.values()) {
      const spent = spendLimit?.spent(now) ?? null;
      if (spent !== null) this.#lookAtSpent(account, { ...spent, key, name });
    }
  }

  #lookAtSpent(account: AccountId, { key, name, period, since, used, limit }: Omit<SpentKey, "account">): void {
    const place = `${account} ${key} ${period}`;
    if (!this.#budgets.take(place, since)) return;
    const tell = (): void =>
      this.#tell("key.budget_used", `${place} ${since}`, async (nameOf) => {
        const email = await nameOf(account);
        const amounts = `${used.toLocaleString("en-US")} of ${tokens(limit)}`;
        const text =
          used < limit
            ? `A request of the key "${name}" of ${email} was refused: it needs more than is left of the key's budget of the ${period} (${amounts} used).`
            : `The key "${name}" of ${email} has used up its budget of the ${period}: ${amounts}.`;
        return {
          text,
          data: { account, email, key, key_name: name, period, used_tokens: used, limit_tokens: limit },
        };
      });
    this.#tellForAll(`key.budget_used ${place}`, String(since), toldBudgetsKeptMs, tell, () =>
      this.#budgets.drop(place),
    );
  }

  /** By the first of several gateways. `failed`: it is unknown which that is; the next check may find out. */
  #tellForAll(name: string, occurrence: string, forMs: Ms, tell: () => void, failed: () => void): void {
    const { finds = null } = this.#parts.accounting;
    if (finds === null) return tell();
    finds.tellOnce(name, occurrence, forMs).then(
      (isFirst) => {
        if (isFirst) tell();
      },
      (thrown: unknown) => {
        failed();
        this.#parts.log("warn", "it is unknown whether another gateway has sent this notice", {
          notice: name,
          reason: String(thrown),
        });
      },
    );
  }

  #lookAtBackups(): void {
    const { failure } = this.#parts.backups;
    if (failure === this.#failure) return;
    this.#failure = failure;
    if (failure === null) return;
    const { at, reason } = failure;
    const data = { reason, failed_at: new Date(at).toISOString() };
    const content = () => ({ text: `No backup was made: ${reason}.`, data });
    this.#tell("backup.failed", String(at), content, this.#parts.gateway);
  }

  #lookAtLedger(): void {
    const { watch, clock } = this.#parts;
    const { violations, checkedAt } = watch.state;
    const now = clock.monotonic();
    const texts = violations.map(({ invariant, account, detail }) => `${invariant} account ${account}: ${detail}`);
    const isNew = texts.some((text) => !this.#violations.has(text));
    if (!isNew || now - this.#violationsToldAt < ledgerNoticeIntervalMs) {
      if (texts.length === 0) this.#violations = new Set();
      return;
    }
    this.#violations = new Set(texts);
    this.#violationsToldAt = now;
    const places = texts.length === 1 ? "one place" : `${texts.length} places`;
    const tell = (): void =>
      this.#tell("ledger.contradiction", String(checkedAt), () => ({
        text: `The ledger contradicts itself in ${places}: see the log, and tollgate doctor. ${texts[0]}`,
        data: { violations: texts.length, first: texts.slice(0, violationsNamedMax) },
      }));
    this.#tellForAll("ledger.contradiction", idOf(texts.join("\n")), dayMs, tell, () => (this.#violations = new Set()));
  }

  async #lookAtDisk(): Promise<void> {
    const { dataFolder, clock, log, freeBytes = freeBytesAt } = this.#parts;
    const now = clock.monotonic();
    if (now - this.#diskLookedAt < diskLookMs) return;
    this.#diskLookedAt = now;
    try {
      const free = await freeBytes(dataFolder);
      if (free > diskWellBytes) this.#diskToldLow = false;
      if (free >= diskLowBytes || this.#diskToldLow) return;
      this.#diskToldLow = true;
      const text = `The disk of the data folder is nearly full: ${bytesText(free)} are free.`;
      const content = () => ({ text, data: { free_bytes: free } });
      this.#tell("disk.low", String(clock.wall()), content, this.#parts.gateway);
    } catch (thrown) {
      log("warn", "the free space of the disk cannot be read", { reason: (thrown as Error).message });
    }
  }

  /** `occurrence` tells it apart from others of its kind; `gateway`: who sees it, where others may see it otherwise. */
  #tell(
    event: Notice["event"],
    occurrence: string,
    content: (nameOf: NameOfAccount) => Soon<NoticeContent>,
    gateway: string | null = null,
  ): void {
    const { accounting, baseUrl, clock } = this.#parts;
    const nameOf = async (account: AccountId): Promise<string> =>
      (await accounting.office.read(({ accounts }) => accounts.record(account)))?.email ?? `account ${account}`;
    this.#deliveries.tell({
      id: idOf(`${baseUrl} ${gateway === null ? "" : `${gateway} `}${event} ${occurrence}`),
      event,
      at: clock.wall(),
      content: async () => withServer(await content(nameOf), { baseUrl, gateway }),
    });
  }
}

export const noSuchWebhook = (name: string, webhooks: readonly Pick<WebhookConfig, "name">[]): CommandError =>
  new CommandError(
    `there is no webhook ${JSON.stringify(name)}; those that are configured: ${webhooks.map((each) => each.name).join(", ") || "none"}`,
  );

type NamedServer = Pick<NoticeParts, "baseUrl" | "gateway">;

export const testNotice = ({ name }: Pick<WebhookConfig, "name">, server: NamedServer, now: Ms): Notice => ({
  id: idOf(crypto.randomUUID()),
  event: "test",
  at: now,
  content: () =>
    withServer({ text: `A test of the webhook ${name}: notices arrive.`, data: { webhook: name } }, server),
});

const withServer = ({ text, data }: NoticeContent, { baseUrl: server, gateway }: NamedServer): NoticeContent => ({
  text: `Tollgate at ${server}${gateway === null ? "" : `, gateway ${gateway}`}: ${text}`,
  data: { server, ...(gateway === null ? {} : { gateway }), ...data },
});

const idOf = (text: string): string => `msg_${createHash("sha256").update(text).digest("hex").slice(0, 32)}`;

const tokens = (amount: number): string => `${amount.toLocaleString("en-US")} balance tokens`;

async function freeBytesAt(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
}

/** Used-up budgets that were reported: once a period, also across restarts. */
class ToldBudgets {
  readonly #file: string;
  readonly #log: Log;
  /** "account key period" -> the first day of the period. */
  #reported: Map<string, number>;
  #isWritten = true;
  #writing = false;

  constructor(file: string, log: Log) {
    this.#file = file;
    this.#log = log;
    this.#reported = this.#read();
  }

  /** Whether it was not reported yet; marks it as reported. */
  take(place: string, since: number): boolean {
    if (this.#reported.get(place) === since) return false;
    this.#reported.set(place, since);
    this.#isWritten = false;
    return true;
  }

  drop(place: string): void {
    this.#reported.delete(place);
  }

  /** Those of the last 32 days, without waiting for it. */
  write(now: Ms): void {
    if (this.#isWritten || this.#writing) return;
    const oldest = Math.floor((now - toldBudgetsKeptMs) / dayMs);
    this.#reported = new Map([...this.#reported].filter(([, since]) => since >= oldest));
    this.#isWritten = true;
    this.#writing = true;
    void this.#write(`${JSON.stringify(Object.fromEntries(this.#reported))}\n`);
  }

  async #write(text: string): Promise<void> {
    try {
      await writeFile(`${this.#file}.new`, text, { mode: 0o600 });
      await rename(`${this.#file}.new`, this.#file);
    } catch (thrown) {
      this.#log("warn", "the list of reported budgets cannot be written", { reason: (thrown as Error).message });
    }
    this.#writing = false;
  }

  #read(): Map<string, number> {
    try {
      const bytes = readWhole(this.#file);
      const written: unknown = bytes === null ? {} : JSON.parse(Buffer.from(bytes).toString());
      return new Map(Object.entries(written as object).filter(([, since]) => typeof since === "number"));
    } catch (thrown) {
      this.#log("warn", "the list of reported budgets cannot be read", { reason: (thrown as Error).message });
      return new Map();
    }
  }
}
