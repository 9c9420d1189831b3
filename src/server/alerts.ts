// What an operator should look at now, for the first page of the console. Nothing is asked unless somebody looks.
import { namesOf } from "../account/people/account-names.ts";
import { dayName, dayOf } from "../account/money/quota.ts";
import type { MailCounts } from "../account/records.ts";
import type { Accounting } from "../books/accounting.ts";
import { addressesOf, type BackupSchedule, type Config } from "../config/config.ts";
import type { OperatorAlert } from "../console/api/server.ts";
import type { Backups } from "../console/server-care.ts";
import type { Catalog } from "../core/catalog.ts";
import type { Clock } from "../core/clock.ts";
import type { RequestLogQueries } from "../core/request-log.ts";
import type { Ms } from "../core/types.ts";
import { dayMs, hourMs } from "../core/units.ts";
import type { NodePool, NodeState } from "../nodes/queue/pool.ts";
import { certificateEnd } from "../notices/certificate.ts";
import type { Work } from "../office/work.ts";
import { modelReport, seenNode } from "./fleet/model-report.ts";
import type { ServedModels } from "./fleet/served-models.ts";
import { backupsOf } from "./kept/backup-files.ts";
import type { LazyNotices } from "./lazy-notices.ts";
import { diskLowBytes } from "./notice-watch.ts";

/** How old a look may be that the live numbers show. */
const alertsFreshMs = 10_000;
/** An account without credit that has used this part of its day's allowance is near its limit. */
const nearLimitPart = 0.95;
const nearLimitNamedMax = 20;
const modelsNamedMax = 5;
const certificateLookMs = 6 * hourMs;
const certificateWarnMs = 14 * dayMs;

type Parts = Readonly<{
  nodes: () => readonly NodeState[];
  /** Ids of models that no node takes now, of those that one should. */
  modelsDown: () => readonly string[];
  requestLog: Pick<RequestLogQueries, "nearLimit">;
  accounting: Pick<Accounting, "office">;
  catalog: Pick<Catalog, "plans">;
  backups: Pick<Backups, "freeBytes" | "schedule" | "list">;
  notices: Pick<LazyNotices, "findings">;
  /** Of the last day; null: no mail is sent. */
  mails: () => Promise<MailCounts | null>;
  baseUrl: string;
  clock: Clock;
}>;

type Server = Pick<Parts, "requestLog" | "notices" | "clock"> &
  Readonly<{
    accounting: Pick<Accounting, "office" | "backup">;
    catalog: Catalog;
    pool: NodePool;
    served: Pick<ServedModels, "areOwn">;
    backupSchedule: () => BackupSchedule | null;
    mail: () => Work["mail"];
    port: number;
  }>;

export function alertsOf(config: Config, server: Server): Alerts {
  const { catalog, pool, served, backupSchedule, mail, port, ...parts } = server;
  const { office } = parts.accounting;
  return new Alerts({
    ...parts,
    catalog,
    nodes: () => pool.states(),
    modelsDown: () =>
      modelReport(catalog, served.areOwn, pool.states().map(seenNode)).served.flatMap(({ id, by, nodes }) =>
        !pool.takes(id) && (nodes.length > 0 || by === "configuration") ? [id] : [],
      ),
    backups: backupsOf(config, backupSchedule, parts.accounting),
    mails: async () =>
      mail() === null ? null : office.read(async ({ mails, now }) => mails.records.mailCounts(now - dayMs)),
    baseUrl: addressesOf(config, port).baseUrl,
  });
}

const nodePath = (name: string): string => `/operator/nodes/${encodeURIComponent(name)}`;

export class Alerts {
  readonly #parts: Parts;
  #latest: readonly OperatorAlert[] = [];
  #lookedAt: Ms = Number.NEGATIVE_INFINITY;
  #look: Promise<readonly OperatorAlert[]> | null = null;
  /** By address: when its certificate ends; null: it has none that could be read. */
  readonly #certificates = new Map<string, Readonly<{ at: Ms; ends: Ms | null }>>();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Those of the latest look; a new one begins where it is old. */
  get latest(): readonly OperatorAlert[] {
    if (this.#parts.clock.monotonic() - this.#lookedAt > alertsFreshMs) void this.list().catch(() => {}); // again later
    return this.#latest;
  }

  /** Rejects with StoreUnavailable. */
  list(): Promise<readonly OperatorAlert[]> {
    this.#look ??= this.#all().finally(() => (this.#look = null));
    return this.#look;
  }

  async #all(): Promise<readonly OperatorAlert[]> {
    this.#lookedAt = this.#parts.clock.monotonic();
    const nearLimit = await this.#nearLimit();
    this.#latest = [
      ...this.#ledger(),
      ...this.#nodes(),
      ...this.#models(),
      ...this.#disk(),
      ...this.#backups(),
      ...(await this.#endingCertificates()),
      ...(await this.#mails()),
      ...nearLimit,
    ];
    return this.#latest;
  }

  *#ledger(): Generator<OperatorAlert> {
    const [first, ...others] = this.#parts.notices.findings.violations;
    if (first === undefined) return;
    const { invariant, account, detail } = first;
    const values = { invariant, account: String(account), detail, others: others.length };
    yield { kind: "ledger", about: "", values, path: "/operator/server" };
  }

  *#nodes(): Generator<OperatorAlert> {
    for (const { name, health, problem, drainedAt } of this.#parts.nodes()) {
      if (health !== "down" || drainedAt !== null) continue;
      yield {
        kind: "node",
        about: name,
        values: { name, problem: problem ?? "it does not answer" },
        path: nodePath(name),
      };
    }
  }

  *#models(): Generator<OperatorAlert> {
    const down = this.#parts.modelsDown();
    if (down.length === 0) return;
    const models = down.slice(0, modelsNamedMax).join(", ");
    const values = { models, others: Math.max(0, down.length - modelsNamedMax) };
    yield { kind: "model", about: "", values, path: "/operator/models" };
  }

  *#disk(): Generator<OperatorAlert> {
    const free = this.#parts.backups.freeBytes();
    if (free === null || free >= diskLowBytes) return;
    yield { kind: "disk", about: "", values: { megabytes: Math.floor(free / 1e6) }, path: "/operator/server" };
  }

  *#backups(): Generator<OperatorAlert> {
    const { backups, notices, clock } = this.#parts;
    const failure = notices.findings.backupFailure;
    const path = "/operator/server";
    if (failure !== null) return void (yield { kind: "backup", about: "", values: { reason: failure.reason }, path });
    if (backups.schedule === null) return;
    const [newest] = backups.list(1);
    // One is made as soon as the server runs, so that none at all is no news.
    if (newest === undefined || clock.wall() - newest.madeAt < 2 * backups.schedule.everyMs) return;
    yield { kind: "old_backup", about: "", values: { day: dayName(dayOf(newest.madeAt)) }, path };
  }

  async #mails(): Promise<readonly OperatorAlert[]> {
    const counts = await this.#parts.mails();
    if (counts === null || counts.problem === null) return [];
    const { waiting, givenUp, problem } = counts;
    return [{ kind: "mail", about: "", values: { problem, waiting, given_up: givenUp }, path: "/operator/server" }];
  }

  async #nearLimit(): Promise<readonly OperatorAlert[]> {
    const { requestLog, catalog, accounting, clock } = this.#parts;
    const limits = Object.entries(catalog.plans).flatMap(([plan, { tokensPerDay, unlimited }]) =>
      unlimited || tokensPerDay === 0 ? [] : [[plan, Math.ceil(tokensPerDay * nearLimitPart)] as const],
    );
    const near = await requestLog.nearLimit(dayOf(clock.wall()), limits, nearLimitNamedMax + 1);
    const emailOf = await namesOf(
      accounting.office,
      near.map(({ account }) => account),
    );
    return near.slice(0, nearLimitNamedMax).map(({ account, used, plan }) => ({
      kind: "account",
      about: String(account),
      values: {
        account: emailOf(account),
        percent: Math.floor((100 * used) / catalog.plans[plan]!.tokensPerDay),
      },
      path: `/operator/log?account=${encodeURIComponent(emailOf(account))}`,
    }));
  }

  async #endingCertificates(): Promise<readonly OperatorAlert[]> {
    const { nodes, baseUrl, clock } = this.#parts;
    const served = nodes().map(({ name, url }) => ({
      kind: "node_certificate" as const,
      name,
      url,
      path: nodePath(name),
    }));
    const ours = { kind: "certificate" as const, name: baseUrl, url: baseUrl, path: "/operator/server" };
    const secure = [ours, ...served].filter(({ url }) => url.startsWith("https:"));
    const found = await Promise.all(secure.map(async (one) => ({ ...one, ends: await this.#endOf(new URL(one.url)) })));
    return found.flatMap(({ kind, name, path, ends }) =>
      ends === null || ends - clock.wall() > certificateWarnMs
        ? []
        : [{ kind, about: name, values: { name, day: dayName(dayOf(ends)) }, path }],
    );
  }

  async #endOf({ hostname, port, origin }: URL): Promise<Ms | null> {
    const now = this.#parts.clock.monotonic();
    const known = this.#certificates.get(origin);
    if (known !== undefined && now - known.at < certificateLookMs) return known.ends;
    const ends = await certificateEnd(hostname, port === "" ? 443 : Number(port));
    this.#certificates.set(origin, { at: now, ends });
    return ends;
  }
}
