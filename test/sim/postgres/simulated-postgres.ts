// PostgreSQL as far as the books need it: the statements by their names, transactions with row locks and their own view of
// uncommitted rows, time limits, and a network that loses, delays and breaks. A standby that is waited for can be failed
// over to: what was acknowledged is never lost, what was only seen may be.
import type { Bulk } from "../../../src/store/postgres/bulk.ts";
import type {
  Call,
  Connection,
  Row,
  Server,
  Statement,
  StatementResult,
} from "../../../src/store/postgres/connection.ts";
import { StatementError } from "../../../src/store/postgres/connection.ts";
import { idleInTransactionMs, lockTimeoutMs } from "../../../src/store/postgres/limits.ts";
import { schemaVersion } from "../../../src/store/postgres/schema.ts";
import type { SimulatedProcess, Timeline } from "./timeline.ts";

type Stored = Readonly<Record<string, unknown>>;
type Transaction = { readonly rows: Map<string, Stored | null>; failed: boolean; readonly begun: boolean };
/** A statement has to wait until the lock of a row is free. */
type Waits = Readonly<{ waitsFor: string }>;

export type NetworkFault = "request lost" | "answer lost" | "reset before" | "reset after" | "late" | null;

/** What a simulation decides and hears of. */
export type Surroundings = Readonly<{
  random: () => number;
  /** Of one message of a client, by the names of its statements. */
  fault(names: readonly string[]): NetworkFault;
  /** Whether the wait for the standby is broken off: the commit can be seen, and is not acknowledged. */
  breaksCommit(): boolean;
  /** Rows are those that were written; a lane's batch has its lane among them. */
  committed(rows: ReadonlyMap<string, Stored | null>, acknowledged: boolean, given: readonly Stored[]): void;
  /** What was seen but not acknowledged is gone. */
  failedOver(): void;
}>;

const failure = (state: string | null, message = "simulated"): StatementError => new StatementError(state, message);

function parsed(array: string | null): readonly (string | null)[] {
  if (array === null) return [];
  return [...array.slice(1, -1).matchAll(/"((?:[^"\\]|\\.)*)"|([^,]+)/g)].map(([, quoted, plain]) =>
    quoted !== undefined ? quoted.replace(/\\(.)/g, "$1") : plain === "NULL" ? null : plain!,
  );
}
const valuesOf = (type: string, array: string | null): readonly (string | number | boolean | null)[] =>
  parsed(array).map((value) =>
    value === null || type === "text" ? value : type === "boolean" ? value === "true" : Number(value),
  );
const numbers = (array: string | null) => parsed(array).map((value) => (value === null ? null : Number(value)));

/** By `table:key`. */
class Rows extends Map<string, Stored> {
  readonly #tables = new Map<string, Set<string>>();

  override set(key: string, row: Stored): this {
    this.of(key.slice(0, key.indexOf(":"))).add(key);
    return super.set(key, row);
  }

  override delete(key: string): boolean {
    this.of(key.slice(0, key.indexOf(":"))).delete(key);
    return super.delete(key);
  }

  /** The keys of a table. */
  of(table: string): Set<string> {
    const known = this.#tables.get(table) ?? new Set();
    this.#tables.set(table, known);
    return known;
  }
}

export class SimulatedPostgres {
  readonly rows = new Rows();
  /** What the standby does not have yet, the latest last. */
  #unacknowledged: { key: string; before: Stored | undefined }[] = [];
  readonly #locks = new Map<string, { owner: Session; waiting: Session[] }>();
  readonly #sessions = new Set<Session>();
  isUp = true;
  /** Of its clock. */
  clockOffset = 0;

  constructor(
    readonly timeline: Timeline,
    readonly startedAt: number,
    readonly surroundings: Surroundings,
  ) {}

  get now(): number {
    return Math.floor(this.startedAt + this.timeline.now + this.clockOffset);
  }

  serverFor(process: SimulatedProcess): Server {
    return {
      connect: () =>
        new Promise<Connection>((resolve, reject) => {
          this.timeline.after(1 + this.surroundings.random(), () =>
            process.awake(() => {
              if (this.isUp) resolve(new SimulatedConnection(this, process));
              else reject(failure(null, "connection refused"));
            }),
          );
        }),
    };
  }

  open(): Session {
    const session = new Session(this);
    this.#sessions.add(session);
    return session;
  }

  /** Dies, and is there again later. Nothing that is committed is lost. */
  crash(awayMs: number): void {
    this.isUp = false;
    for (const session of [...this.#sessions]) this.end(session, "57P01");
    this.timeline.after(awayMs, () => void (this.isUp = true));
  }

  /** The standby takes over: what was not acknowledged is gone. */
  failOver(awayMs: number): void {
    this.crash(awayMs);
    for (const { key, before } of this.#unacknowledged.reverse()) {
      if (before === undefined) this.rows.delete(key);
      else this.rows.set(key, before);
    }
    this.#unacknowledged = [];
    this.surroundings.failedOver();
  }

  end(session: Session, state: string): void {
    session.died(state);
    this.#sessions.delete(session);
    this.freeAll(session);
  }

  holdsLock(session: Session, key: string): boolean {
    const lock = this.#locks.get(key);
    if (lock === undefined) {
      this.#locks.set(key, { owner: session, waiting: [] });
      return true;
    }
    return lock.owner === session;
  }

  waitFor(session: Session, key: string): void {
    this.#locks.get(key)!.waiting.push(session);
  }

  freeAll(session: Session): void {
    for (const [key, lock] of [...this.#locks]) {
      lock.waiting = lock.waiting.filter((other) => other !== session);
      if (lock.owner !== session) continue;
      this.#locks.delete(key);
      for (const waiting of lock.waiting) this.timeline.after(0, () => waiting.goOn());
    }
  }

  /** Whether it was acknowledged. */
  commit({ rows }: Transaction, given: readonly Stored[]): boolean {
    const acknowledged = rows.size === 0 || !this.surroundings.breaksCommit();
    for (const [key, row] of rows) {
      this.#unacknowledged.push({ key, before: this.rows.get(key) });
      if (row === null) this.rows.delete(key);
      else this.rows.set(key, row);
    }
    if (acknowledged && rows.size > 0) this.#unacknowledged = [];
    if (rows.size > 0) this.surroundings.committed(rows, acknowledged, given);
    return acknowledged;
  }
}

class SimulatedConnection implements Connection {
  readonly #postgres: SimulatedPostgres;
  readonly #process: SimulatedProcess;
  readonly #session: Session;
  #closed = false;
  #sentUntil = 0;

  constructor(postgres: SimulatedPostgres, process: SimulatedProcess) {
    this.#postgres = postgres;
    this.#process = process;
    this.#session = postgres.open();
  }

  send(calls: readonly Call[]): Promise<readonly StatementResult[]> {
    const { timeline, surroundings } = this.#postgres;
    const { random } = surroundings;
    const fault = surroundings.fault(calls.map(({ statement }) => statement.name));
    const { promise, resolve } = Promise.withResolvers<readonly StatementResult[]>();
    const answer = (outcomes: readonly StatementResult[]) => {
      if (fault === "answer lost") return;
      const heard = fault === "reset after" ? calls.map(() => failure(null, "connection reset")) : outcomes;
      timeline.after(0.1 + random(), () =>
        this.#process.awake(() => {
          if (!this.#closed) resolve(heard);
        }),
      );
      if (fault === "reset after") this.#postgres.end(this.#session, "08006");
    };
    if (fault === "request lost") return promise;
    if (fault === "reset before") {
      this.#postgres.end(this.#session, "08006");
      answer(calls.map(() => failure(null, "connection reset")));
      return promise;
    }
    // One connection delivers in order.
    const at = Math.max(this.#sentUntil, timeline.now + 0.1 + random() + (fault === "late" ? 12_000 * random() : 0));
    this.#sentUntil = at;
    timeline.after(at - timeline.now, () => this.#session.take(calls, answer));
    return promise;
  }

  /** The server hears of it later, behind what is on its way. */
  close(): void {
    this.#closed = true;
    const { timeline, surroundings } = this.#postgres;
    const at = Math.max(
      this.#sentUntil,
      timeline.now + (surroundings.random() < 0.3 ? 8_000 : 5) * surroundings.random(),
    );
    timeline.after(at - timeline.now, () => this.#session.left());
  }
}

class Session {
  readonly #postgres: SimulatedPostgres;
  #transaction: Transaction | null = null;
  readonly #queue: {
    calls: readonly Call[];
    outcomes: StatementResult[];
    answer: (outcomes: readonly StatementResult[]) => void;
  }[] = [];
  #given: Stored[] = [];
  #death: string | null = null;
  #hasLeft = false;
  #stopIdle: () => void = () => {};
  #stopWaiting: (() => void) | null = null;
  #lockMs = lockTimeoutMs;
  #idleMs = idleInTransactionMs;

  constructor(postgres: SimulatedPostgres) {
    this.#postgres = postgres;
  }

  take(calls: readonly Call[], answer: (outcomes: readonly StatementResult[]) => void): void {
    if (this.#death !== null) return answer(calls.map(() => failure(this.#death)));
    this.#stopIdle();
    this.#queue.push({ calls, outcomes: [], answer });
    if (this.#queue.length === 1) this.goOn();
  }

  left(): void {
    this.#hasLeft = true;
    if (this.#queue.length === 0 && this.#death === null) this.#postgres.end(this, "08006");
  }

  died(state: string): void {
    this.#death = state;
    this.#stopIdle();
    this.#stopWaiting?.();
    this.#transaction = null;
    for (const { calls, outcomes, answer } of this.#queue.splice(0)) {
      answer(calls.map((_, index) => outcomes[index] ?? failure(state)));
    }
  }

  goOn(): void {
    this.#stopWaiting?.();
    this.#stopWaiting = null;
    for (let next = this.#queue[0]; next !== undefined && this.#death === null; next = this.#queue[0]) {
      const { calls, outcomes, answer } = next;
      while (outcomes.length < calls.length) {
        const outcome = this.#run(calls[outcomes.length]!);
        if (outcome === "broken off") return this.#postgres.end(this, "57P01");
        if ("waitsFor" in outcome) return this.#wait(outcome.waitsFor, outcomes);
        outcomes.push(outcome);
      }
      this.#queue.shift();
      answer(outcomes);
    }
    if (this.#death !== null) return;
    if (this.#hasLeft) return this.#postgres.end(this, "08006");
    if (this.#transaction === null) return;
    this.#stopIdle = this.#postgres.timeline.after(this.#idleMs, () => this.#postgres.end(this, "25P03"));
  }

  #wait(key: string, outcomes: StatementResult[]): void {
    this.#postgres.waitFor(this, key);
    this.#stopWaiting = this.#postgres.timeline.after(this.#lockMs, () => {
      this.#stopWaiting = null;
      outcomes.push(failure("55P03"));
      if (this.#transaction !== null) this.#transaction.failed = true;
      this.goOn();
    });
  }

  #run(each: Call): readonly Row[] | StatementError | Waits | "broken off" {
    const { name } = each.statement;
    if (name === "begin") {
      this.#transaction = { rows: new Map(), failed: false, begun: true };
      return [];
    }
    if (name === "rollback" || name === "commit") {
      const transaction = this.#transaction;
      this.#transaction = null;
      const given = this.#given;
      this.#given = [];
      const isTaken = name === "commit" && transaction !== null && !transaction.failed;
      const acknowledged = !isTaken || this.#postgres.commit(transaction, given);
      this.#postgres.freeAll(this);
      if (!acknowledged) return "broken off";
      return name === "commit" && transaction?.failed === true ? failure("40000") : [];
    }
    if (this.#transaction?.failed === true) return failure("25P02");
    const transaction = this.#transaction ?? { rows: new Map(), failed: false, begun: false };
    const bulk = bulkOf(each.statement);
    const outcome =
      bulk === null
        ? this.#execute(name, each.parameters, transaction)
        : this.#write(bulk, each.parameters, transaction.rows);
    if ("waitsFor" in outcome) return outcome;
    if (outcome instanceof StatementError) transaction.failed = true;
    else if (!transaction.begun) {
      const acknowledged = this.#postgres.commit(transaction, []);
      this.#postgres.freeAll(this);
      if (!acknowledged) return "broken off";
    }
    return outcome;
  }

  /** Writes rows by the names of their columns; the values of a key name a row. */
  #write(
    { verb, table, key, columns, shared = {}, changed = [] }: Bulk,
    parameters: readonly (string | null)[],
    rows: Map<string, Stored | null>,
  ): readonly Row[] | StatementError | Waits {
    const same = Object.keys(shared).map((column, place) => [column, parameters[place]]);
    const types = Object.entries(columns);
    const arrays = parameters.slice(same.length).map((array, place) => valuesOf(types[place]![1], array));
    const written = arrays[0]!.map((_, index) => {
      const values: Stored = Object.fromEntries([
        ...same,
        ...types.map(([column], at) => [column, arrays[at]![index]]),
      ]);
      return [`${table}:${key.map((column) => values[column] as string | number).join(" ")}`, values] as const;
    });
    if (verb === "update") {
      const held = written.find(([name]) => !this.#postgres.holdsLock(this, name));
      if (held !== undefined) return { waitsFor: held[0] };
    }
    for (const [name, values] of written) {
      const before = rows.has(name) ? rows.get(name)! : (this.#postgres.rows.get(name) ?? null);
      if (verb === "delete") rows.set(name, null);
      else if (before === null) {
        if (verb !== "update") rows.set(name, values);
      } else if (verb === "insert") return failure("23505", `${name} exists`);
      else if (verb === "update") rows.set(name, { ...before, ...values });
      else {
        const after = changed.map((column) => [
          column,
          verb === "set" ? values[column] : sumOf(before, values, column),
        ]);
        rows.set(name, { ...before, ...Object.fromEntries(after) });
      }
    }
    return [];
  }

  #execute(
    name: string,
    parameters: readonly (string | null)[],
    { rows }: Transaction,
  ): readonly Row[] | StatementError | Waits {
    const postgres = this.#postgres;
    const get = (key: string): Stored | null => (rows.has(key) ? rows.get(key)! : (postgres.rows.get(key) ?? null));
    const all = (table: string): [string, Stored][] =>
      [
        ...new Set([...postgres.rows.of(table), ...[...rows.keys()].filter((key) => key.startsWith(`${table}:`))]),
      ].flatMap((key) => (get(key) === null ? [] : [[key, get(key)!] as [string, Stored]]));
    const locked = (keys: readonly string[]): Waits | null => {
      for (const key of keys) if (!postgres.holdsLock(this, key)) return { waitsFor: key };
      return null;
    };
    const [first = null, second = null] = parameters;
    const lane = `lanes:${first}`;
    switch (name) {
      case "set up":
        this.#idleMs = Number(first);
        this.#lockMs = Number(second);
        return [];
      case "recovery":
        return [];
      case "wait for tables":
      case "lock keys":
        return [];
      case "backend id":
        return [{ pid: 1 }];
      case "who blocks":
        return failure("42883", "function pg_blocking_pids(integer) does not exist");
      case "try account": {
        const key = `accounts:${first}`;
        if (get(key) === null) return [];
        return postgres.holdsLock(this, key) ? [{}] : failure("55P03");
      }
      case "clock":
        return [{ now: postgres.now }];
      case "register lane":
        rows.set(lane, { id: first, batch: 0, seen: postgres.timeline.now, gone: false });
        return [{ registered: 1 }];
      case "read meta":
        return [{ schema: schemaVersion, oldest_program: 1, closed: false }];
      case "take lane": {
        const waits = locked([lane]);
        if (waits !== null) return waits;
        const row = get(lane);
        if (row === null || row["gone"] === true || row["batch"] !== Number(second) - 1) return [];
        rows.set(lane, { ...row, batch: Number(second), seen: postgres.timeline.now });
        return [{ taken: 1 }];
      }
      case "read lane": {
        const row = get(lane);
        return row === null ? [] : [{ batch: row["batch"], gone: row["gone"] }];
      }
      case "touch lane":
      case "leave lane": {
        const waits = locked([lane]);
        if (waits !== null) return waits;
        const row = get(lane);
        if (row === null || row["gone"] === true) return [];
        rows.set(lane, name === "touch lane" ? { ...row, seen: postgres.timeline.now } : { ...row, gone: true });
        return [];
      }
      case "look at lanes":
        return all("lanes").flatMap(([, row]) =>
          row["gone"] === true ? [] : [{ id: row["id"], mark: `${row["batch"]} ${row["seen"]}` }],
        );
      case "mark gone": {
        const waits = locked([lane]);
        if (waits !== null) return waits;
        const row = get(lane);
        if (row === null || row["gone"] === true || `${row["batch"]} ${row["seen"]}` !== second) return [];
        rows.set(lane, { ...row, gone: true });
        return [{ marked: 1 }];
      }
      case "forget lanes":
        return [];
      case "lock accounts": {
        const keys = numbers(first)
          .sort((a, b) => a! - b!)
          .map((id) => `accounts:${id}`)
          .filter((key) => get(key) !== null);
        return locked(keys) ?? keys.map((key) => get(key)!);
      }
      case "read keys":
        return numbers(first).flatMap((account, index) => {
          const row = get(`api_keys:${account} ${numbers(second)[index]}`);
          return row === null ? [] : [row];
        });
      case "read key use": {
        const names = numbers(first).map((account, index) => `${account} ${numbers(second)[index]}`);
        return all("key_use")
          .map(([, row]) => ({ ...row, account: row["account_id"] as number, key: row["key_id"] as number }))
          .filter(({ account, key }) => names.includes(`${account} ${key}`))
          .filter((row: Stored) => (row["day"] as number) >= Number(parameters[2]));
      }
      case "read use":
        return numbers(first).flatMap((account, index) => {
          const row = get(`quota_use:${account} ${parsed(second)[index]} ${numbers(parameters[2]!)[index]}`);
          return row === null ? [] : [{ ...row, account }];
        });
      case "read left holds":
        return all("holds").flatMap(([, row]) => {
          const own = get(`lanes:${row["lane"] as string}`);
          const isLeft = own === null || own["gone"] === true;
          return isLeft ? [{ lane: row["lane"], account: row["account_id"], request: row["request_id"] }] : [];
        });
      case "read holds":
        return all("holds")
          .filter(([, row]) => row["lane"] === first)
          .map(([, row]) => ({ request_id: row["request_id"] }));
      case "lock holders":
      case "give back": {
        const wanted = second === null ? null : parsed(second);
        const given = all("holds").filter(
          ([, row]) => row["lane"] === first && (wanted === null || wanted.includes(row["request_id"] as string)),
        );
        const holders = [...new Set(given.map(([, row]) => row["account_id"] as number))].sort((a, b) => a - b);
        if (name === "lock holders") return locked(holders.map((id) => `accounts:${id}`)) ?? [];
        for (const [key, row] of given) {
          rows.set(key, null);
          this.#given.push(row);
          const isLimited = get(`api_keys:${row["account_id"] as number} ${row["key_id"] as number}`);
          const owners = [`accounts:${row["account_id"] as number}`];
          if (isLimited !== null && (isLimited["tokens_per_day"] !== null || isLimited["tokens_per_month"] !== null)) {
            owners.push(`api_keys:${row["account_id"] as number} ${row["key_id"] as number}`);
          }
          for (const owner of owners) rows.set(owner, subtracted(get(owner)!, row));
        }
        return [{ holds: given.length }];
      }
      case "forget shares":
        return []; // see shares.test.ts
      default:
        throw new Error(`the simulation knows no statement "${name}"`);
    }
  }
}

const bulkOf = (statement: Statement): Bulk | null => ("bulk" in statement ? (statement.bulk as Bulk) : null);

const sumOf = (one: Stored, other: Stored, column: string): number =>
  (one[column] as number) + (other[column] as number);

function subtracted(from: Stored, hold: Stored): Stored {
  const of = (row: Stored, name: string) => row[name] as number;
  const waits = hold["waits"] === true;
  return {
    ...from,
    held: of(from, "held") - of(hold, "tokens"),
    waiting_held: of(from, "waiting_held") - (waits ? of(hold, "tokens") : 0),
    begun: of(from, "begun") - (!waits && of(hold, "cost") > 0 ? 1 : 0),
    expected: of(from, "expected") - (waits ? 0 : of(hold, "cost")),
    ...("holds" in from ? { holds: of(from, "holds") - 1 } : {}),
  };
}
