// What the console and commands ask and change of accounts, as one transaction each. The deciders are those of the account/
// folder, unchanged and synchronous: a fresh set of them decides on what was read. Where it asks for what was not read yet, it
// is stopped, that is read, and it begins again from its start; so it does when others were in the way.
//
//   decide on nothing -> read, without locks -> decide -> nothing is written: that is the answer
//                                                 |
//         others were in the way: again           v what is to be written needs locks
//   lock the accounts in order -> read again, and lock the rest -> decide -> write, commit -> the answer
//
// Locks are taken in everybody's order (statements.ts): an account that is met late begins the second line again. No row is
// locked while a password is hashed: that is done between two beginnings.
import { AsyncLocalStorage } from "node:async_hooks";
import { AccessLinks } from "../../account/access-links.ts";
import { AccountKeys } from "../../account/account-keys.ts";
import { Accounts, type Verify } from "../../account/accounts.ts";
import { AuditLog } from "../../account/audit.ts";
import type { Entry } from "../../account/entry.ts";
import { Identities } from "../../account/identities.ts";
import type { AccountChange, Journal } from "../../account/journal.ts";
import { Keys } from "../../account/keys.ts";
import { Ledger } from "../../account/ledger.ts";
import type { Passwords } from "../../account/passwords.ts";
import { Purchases } from "../../account/purchases.ts";
import { Sessions } from "../../account/sessions.ts";
import type { Period } from "../../account/quota.ts";
import type { Catalog } from "../../core/catalog.ts";
import type { Clock } from "../../core/clock.ts";
import { type AccountId, type KeyId, type Ms, StoreUnavailable } from "../../core/types.ts";
import { writesOf } from "./changes.ts";
import { StatementError } from "./connection.ts";
import type { Database } from "./database.ts";
import { callTimeoutMs } from "./limits.ts";
import { type Pace, systemPace } from "./pace.ts";
import { type AllRecords, PostgresRecords } from "./records.ts";

export type UnitsOptions = Readonly<{
  database: Database;
  catalog: Pick<Catalog, "plans"> & Partial<Pick<Catalog, "models">>;
  clock: Clock;
  passwords: Pick<Passwords, "hash" | "verify" | "ofNobody">;
  verify: Verify;
  pace?: Pace;
}>;

/** A set of them is good for one attempt. */
export type Deciders = Readonly<{
  accounts: Accounts;
  accountKeys: AccountKeys;
  sessions: Sessions;
  purchases: Purchases;
  auditLog: AuditLog;
  links: AccessLinks;
  identities: Identities;
}>;

export type Work<Result> = (deciders: Deciders) => Result | Promise<Result>;

/** How often one is decided again because another gateway gave away the same number, e-mail or billing key. */
const refusedMax = 5;

type Read = Readonly<{ name: keyof PostgresRecords; given: readonly unknown[]; value: unknown }>;
type Reads = Map<string, Read>;
/** What takes its time, by what it is; an outcome stays for the attempts that follow. */
type Slow = Map<string, () => Promise<unknown>>;

/** Why an attempt was stopped. */
type Wanted =
  | Readonly<{ why: "read"; key: string; name: keyof PostgresRecords; given: readonly unknown[] }>
  | Readonly<{ why: "wait"; key: string; run: () => Promise<unknown> }>
  | Readonly<{ why: "write" }>;

/** Thrown through a decider that cannot go on; why is in its attempt, whatever becomes of this. */
class Stopped extends Error {
  override readonly name = "Stopped";
}

export class Units {
  readonly database: Database;
  readonly #options: UnitsOptions;
  readonly #pace: Pace;
  readonly #current = new AsyncLocalStorage<Attempt>();

  constructor(options: UnitsOptions) {
    this.database = options.database;
    this.#options = options;
    this.#pace = options.pace ?? systemPace;
  }

  /**
   * One unit; within `work` of another, a part of that. `work` may run several times, and what it calls "in the same
   * commit" with it; what it gives is told when it is committed. Rejects with StoreUnavailable, or with what `work` throws,
   * when nothing was changed.
   */
  run<Result>(work: Work<Result>): Promise<Result> {
    const { joined } = this;
    return joined === null ? this.#alone(work) : (async () => work(joined))();
  }

  /** Those of the unit that this is called in; null outside of all. */
  get joined(): Deciders | null {
    const attempt = this.#current.getStore();
    return attempt === undefined || attempt.isOver ? null : attempt.deciders;
  }

  async #alone<Result>(work: Work<Result>): Promise<Result> {
    const slow: Slow = new Map();
    let waitedMs = 0;
    const startedAt = this.#pace.monotonic();
    const left = (): Ms => Math.max(1, callTimeoutMs + waitedMs - (this.#pace.monotonic() - startedAt));
    for (let refused = 0; ;) {
      const attempt = await this.#look(work, slow, left());
      if (attempt.wanted === null) return attempt.result() as Result;
      let { wanted } = attempt;
      if (wanted.why === "write") {
        try {
          const written = await this.#write(work, slow, attempt.reads, left);
          if (written.wanted === null) return written.result() as Result;
          wanted = written.wanted;
        } catch (thrown) {
          if (!(thrown instanceof StatementError)) throw thrown;
          refused += 1;
          if (refused >= refusedMax) {
            throw new StoreUnavailable(`the ledger does not take this change: ${thrown.message}`, { cause: thrown });
          }
        }
      }
      if (wanted.why !== "wait") continue;
      const beganAt = this.#pace.monotonic();
      await wanted.run().catch(() => {}); // who asked for it is told when it is asked for again
      waitedMs += this.#pace.monotonic() - beganAt;
    }
  }

  /** Decides as far as that goes without locks. */
  async #look(work: Work<unknown>, slow: Slow, limitMs: Ms): Promise<Attempt> {
    const first = await this.#attempt(work, new Map(), slow, false);
    if (first.wanted?.why !== "read") return first; // nothing was asked
    const { wanted } = first;
    return this.database.read(async (session) => {
      const records = new PostgresRecords(session);
      const reads: Reads = new Map([await readOf(records, wanted)]);
      for (;;) {
        const attempt = await this.#attempt(work, reads, slow, false);
        if (attempt.wanted?.why !== "read") return attempt;
        reads.set(...(await readOf(records, attempt.wanted)));
      }
    }, limitMs);
  }

  /** The same under locks, and writes it; `before` says what there will be to read. */
  async #write(work: Work<unknown>, slow: Slow, before: Reads, left: () => Ms): Promise<Attempt> {
    const locked = new Set([...before.values()].flatMap(accountsOf));
    for (;;) {
      const size = locked.size;
      const attempt = await this.database.transaction(
        async (session) => {
          const records = new PostgresRecords(session, true);
          if (locked.size > 0) await records.lockAccounts([...locked]);
          const reads: Reads = new Map();
          const read = async (key: string, wanted: Pick<Read, "name" | "given">): Promise<boolean> => {
            const [, found] = await readOf(records, { key, ...wanted });
            reads.set(key, found);
            const late = accountsOf(found).filter((account) => !locked.has(account));
            for (const account of late) locked.add(account);
            return late.length === 0;
          };
          // One order for all, since some are locked by it.
          for (const [key, wanted] of [...before].sort(([one], [other]) => (one < other ? -1 : 1))) {
            if (!(await read(key, wanted))) return null;
          }
          for (;;) {
            const tried = await this.#attempt(work, reads, slow, true);
            if (tried.wanted?.why !== "read") {
              if (tried.wanted === null && !tried.isRefused) session.atEnd(writesOf(tried.changes, tried.entries));
              return tried;
            }
            if (!(await read(tried.wanted.key, tried.wanted))) return null;
          }
        },
        { limitMs: left() },
      );
      if (attempt !== null) return attempt;
      if (locked.size === size) throw new StoreUnavailable("the accounts of a change could not be locked");
    }
  }

  async #attempt(work: Work<unknown>, reads: Reads, slow: Slow, mayWrite: boolean): Promise<Attempt> {
    const attempt = new Attempt(this.#options, reads, slow, mayWrite);
    await this.#current.run(attempt, () => attempt.make(work));
    return attempt;
  }
}

/** One try to decide, on what was read. */
class Attempt {
  wanted: Wanted | null = null;
  isOver = false;
  /** By a decider: nothing is written. */
  isRefused = false;
  readonly changes: AccountChange[] = [];
  readonly entries: Entry[] = [];
  readonly deciders: Deciders;
  readonly reads: Reads;
  readonly #slow: Slow;
  readonly #mayWrite: boolean;
  #outcome: Readonly<{ result: unknown }> | Readonly<{ thrown: unknown }> | null = null;

  constructor({ catalog, clock, passwords, verify }: UnitsOptions, reads: Reads, slow: Slow, mayWrite: boolean) {
    this.reads = reads;
    this.#slow = slow;
    this.#mayWrite = mayWrite;
    const records = recordsOf((name, given) => this.#read(name, given));
    const journal: Journal = {
      writable: true,
      append: (entry) => this.#add(this.entries, entry),
      change: (change) => this.#add(this.changes, change),
      durable: () => decided, // told to nobody before it is committed
    };
    const slowly: UnitsOptions["passwords"] = {
      hash: (password, turn) => this.#wait(`hash ${password}`, () => passwords.hash(password, turn)),
      verify: (password, hash, turn) =>
        this.#wait(`verify ${hash} ${password}`, () => passwords.verify(password, hash, turn)),
      ofNobody: () => this.#wait("of nobody", () => passwords.ofNobody()),
    };
    const { plans } = catalog;
    const ledger = new Ledger(records, plans);
    const keys = new Keys(records, ledger);
    const accounts = new Accounts({ records, ledger, keys, journal, plans, clock, verify, passwords: slowly });
    this.deciders = {
      accounts,
      accountKeys: new AccountKeys({ records, ledger, keys, journal, accounts, catalog, clock }),
      sessions: new Sessions(records, journal, ledger),
      purchases: new Purchases({ accounts, records, journal, clock }),
      auditLog: new AuditLog(records, journal),
      links: new AccessLinks(records, journal, clock),
      identities: new Identities(records, journal),
    };
  }

  async make(work: Work<unknown>): Promise<void> {
    try {
      this.#outcome = { result: await work(this.deciders) };
    } catch (thrown) {
      this.#outcome = { thrown };
      this.isRefused = true;
    } finally {
      this.isOver = true;
    }
  }

  /** Throws what `work` threw. */
  result(): unknown {
    if ("thrown" in this.#outcome!) throw this.#outcome.thrown;
    return this.#outcome!.result;
  }

  #read(name: keyof PostgresRecords, given: readonly unknown[]): unknown {
    const key = `${name} ${JSON.stringify(given)}`;
    const read = this.reads.get(key);
    return read === undefined ? this.#stop({ why: "read", key, name, given }) : read.value;
  }

  #add<Item>(items: Item[], item: Item): number {
    if (!this.#mayWrite) this.#stop({ why: "write" });
    items.push(item);
    return this.changes.length + this.entries.length;
  }

  #wait<Value>(key: string, run: () => Promise<Value>): Promise<Value> {
    const known = this.#slow.get(key);
    if (known !== undefined) return known() as Promise<Value>;
    const once = (): Promise<Value> => {
      const running = run();
      this.#slow.set(key, () => running);
      return running;
    };
    return this.#stop({ why: "wait", key, run: once });
  }

  #stop(wanted: Wanted): never {
    this.wanted ??= wanted;
    throw new Stopped(wanted.why);
  }
}

const decided = Promise.resolve();

async function readOf(
  records: PostgresRecords,
  { key, name, given }: Readonly<{ key: string }> & Pick<Read, "name" | "given">,
): Promise<[string, Read]> {
  const ask = records[name] as (...given: readonly unknown[]) => Promise<unknown>;
  return [key, { name, given, value: await ask.call(records, ...given) }];
}

/** The accounts by which is decided. */
function accountsOf({ name, given, value }: Read): readonly AccountId[] {
  switch (name) {
    case "byId":
    case "keysOf":
    case "keyUses":
    case "sessionsOf":
    case "identitiesOf":
    case "pendingRequests":
    case "endUsersNamed":
      return typeof given[0] === "number" ? [given[0]] : [];
    case "byEmail":
    case "byKeyHash":
      return value === null ? [] : [(value as Readonly<{ id: AccountId }>).id];
    case "request":
    case "link":
    case "linkById":
    case "session": {
      const account = (value as Readonly<{ account: AccountId | null }> | null)?.account ?? null;
      return account === null ? [] : [account];
    }
    default:
      return [];
  }
}

/** What deciders ask, of what was read; `read` throws where it was not. */
function recordsOf(read: (name: keyof PostgresRecords, given: readonly unknown[]) => unknown): AllRecords {
  const names = Object.getOwnPropertyNames(PostgresRecords.prototype) as (keyof PostgresRecords)[];
  const records = Object.fromEntries(names.map((name) => [name, (...given: unknown[]) => read(name, given)]));
  return {
    ...(records as unknown as AllRecords),
    lastAuditId: () => 0, // numbered when they are written
    keyUse(account: AccountId, key: KeyId, from: Period, before: Period) {
      type Uses = Awaited<ReturnType<PostgresRecords["keyUses"]>>;
      return (read("keyUses", [account, from, before]) as Uses).filter((use) => use.key === key);
    },
  };
}
