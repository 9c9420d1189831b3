// Transactions of the console, of commands and of work that is done now and then, on a few connections beside the lane's.
//
// A pool of our own, of connections and not of Bun.SQL's, because a network that falls silent must cost its own transaction
// alone: of a pool of Bun.SQL no single connection can be let go of.
import { drizzle } from "drizzle-orm/pg-proxy";
import { type Ms, StoreUnavailable } from "../../core/types.ts";
import { type Question, type Questions, type Send, statement, type Value } from "../questions.ts";
import {
  type Call,
  call,
  type Connection,
  isDefinite,
  isFailed,
  type Row,
  type Server,
  StatementError,
} from "./connection.ts";
import {
  callTimeoutMs,
  idleInTransactionMs,
  lockTimeoutMs,
  retryFirstMs,
  retryMostMs,
  sideConnectionsMax,
} from "./limits.ts";
import { limited, type Pace, systemPace } from "./pace.ts";

/**
 * What runs in one transaction: statements that are sent together, and drizzle queries (whole numbers of 8 bytes come back
 * as numbers where drizzle knows the column; `sum` and `count` need `.mapWith(Number)`). Both throw StatementError.
 */
export interface Session {
  readonly db: Queries;
  /** Sends them at once; gives the rows of each. */
  run(calls: readonly Call[]): Promise<readonly (readonly Row[])[]>;
  /** Sent together with the end of the transaction. */
  atEnd(calls: readonly Call[]): void;
}

type Queries = ReturnType<typeof queriesOn>;

export type TransactionOptions = Readonly<{
  /** `read` changes nothing; `snapshot` neither, and all its queries see the same. */
  access?: "write" | "read" | "snapshot";
  /** In all, with waiting for a connection and for locks. */
  limitMs?: Ms;
}>;

/** The connection broke during the end of a transaction: it may have been committed. */
export class CommitUnknown extends StoreUnavailable {}

export class Database implements Questions {
  readonly #server: Server;
  readonly #pace: Pace;
  /** Why this program may not write to the tables anymore, in words; null: it may. */
  outdated: () => string | null = () => null;
  #free: number;
  readonly #idle: Connection[] = [];
  readonly #waiting: (() => void)[] = [];
  #isClosed = false;

  constructor(server: Server, pace: Pace = systemPace, connectionsMax = sideConnectionsMax) {
    this.#server = server;
    this.#pace = pace;
    this.#free = connectionsMax;
  }

  /** In a transaction of its own. Rejects with StoreUnavailable. */
  readonly ask = <Row>(question: Question, ...values: readonly Value[]): Promise<readonly Row[]> =>
    this.read((session) => sendIn(session)<Row>(question, ...values));

  /** Rejects with StoreUnavailable. */
  change<Result>(
    work: (send: Send) => Promise<Result>,
    { alone, ...options }: Parameters<Questions["change"]>[1] & {} = {},
  ): Promise<Result> {
    return this.transaction(async (session) => {
      const send = sendIn(session);
      if (alone !== undefined) {
        await send(makeLock, alone);
        await send(lock, alone);
      }
      return work(send);
    }, options);
  }

  read<Result>(work: (session: Session) => Promise<Result>, limitMs?: Ms): Promise<Result> {
    return this.transaction(work, { access: "read", ...(limitMs === undefined ? {} : { limitMs }) });
  }

  /**
   * Runs `work` in a transaction and commits it; what it throws takes all back. It may run several times, each on what is
   * committed then, where others were in the way. Rejects with StoreUnavailable (CommitUnknown where it may be committed),
   * or with StatementError where what it wrote breaks a rule of a table (class 23).
   */
  async transaction<Result>(
    work: (session: Session) => Promise<Result>,
    { access = "write", limitMs = callTimeoutMs }: TransactionOptions = {},
  ): Promise<Result> {
    const outdated = access === "write" ? this.outdated() : null;
    if (outdated !== null) throw new StoreUnavailable(outdated);
    const until = this.#pace.monotonic() + limitMs;
    for (let pauseMs: Ms = retryFirstMs; ; pauseMs = Math.min(2 * pauseMs, retryMostMs)) {
      const tried = await this.#try(work, access, until);
      if (!(tried instanceof Again)) return tried.result;
      if (this.#pace.monotonic() + pauseMs >= until) throw unavailable(tried.error);
      // Two who are in each other's way would be so again if they waited equally long.
      if (tried.isConflict) await this.#sleep(pauseMs * (0.5 + Math.random()));
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const connection of this.#idle.splice(0)) connection.close();
  }

  async #try<Result>(
    work: (session: Session) => Promise<Result>,
    access: Access,
    until: Ms,
  ): Promise<Readonly<{ result: Result }> | Again> {
    await this.#enter(until);
    const known = this.#idle.pop();
    let connection = known ?? null;
    const session = new OpenSession(this.#pace, access, until);
    let ending = ended;
    try {
      connection ??= await this.#connect(until);
      session.begin(connection);
      const result = await work(session);
      if (access === "write") await session.commit();
      else ending = session.rollBack(); // the rows are here: no need to wait
      return { result };
    } catch (thrown) {
      const error = statementErrorOf(thrown);
      await session.rollBack();
      if (error === null) throw thrown;
      if (session.isUnknown) {
        throw new CommitUnknown(`it is unknown whether it was committed: ${error.message}`, { cause: error });
      }
      if (isConflict(error)) return new Again(error, true);
      // One that was idle may be gone since long: the next is another.
      if (known !== undefined && session.isBroken) return new Again(error, false);
      if (error.state?.startsWith("23") === true) throw error;
      throw unavailable(error);
    } finally {
      void ending.then(() => this.#leave(session.isBroken ? null : connection, connection));
    }
  }

  async #connect(until: Ms): Promise<Connection> {
    if (this.#isClosed) throw new StatementError(null, "the connections are closed");
    return limited(this.#pace, this.#server.connect(), (late) => late.close(), this.#left(until));
  }

  #left(until: Ms): Ms {
    return Math.max(1, until - this.#pace.monotonic());
  }

  async #enter(until: Ms): Promise<void> {
    if (this.#free > 0) {
      this.#free -= 1;
      return;
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const cancel = this.#pace.after(this.#left(until), () => {
      this.#waiting.splice(this.#waiting.indexOf(entered), 1);
      reject(new StoreUnavailable("all connections to the database are in use"));
    });
    const entered = (): void => {
      cancel();
      resolve();
    };
    this.#waiting.push(entered);
    return promise;
  }

  #leave(kept: Connection | null, connection: Connection | null): void {
    if (kept !== null && !this.#isClosed) this.#idle.push(kept);
    else connection?.close();
    const next = this.#waiting.shift();
    if (next === undefined) this.#free += 1;
    else next();
  }

  #sleep(ms: Ms): Promise<void> {
    return new Promise((resolve) => void this.#pace.after(ms, resolve));
  }
}

export const sendIn =
  (session: Session): Send =>
  async <Row>(question: Question, ...values: readonly Value[]) => {
    const given = values.map((value) => (typeof value === "string" ? textParameter(value) : value));
    const [rows] = await session.run([call(question, ...given)]);
    return rows as readonly unknown[] as readonly Row[];
  };

const makeLock = statement(
  "make lock",
  "INSERT INTO counters (name, value) VALUES ($1::text, 0) ON CONFLICT DO NOTHING",
);
const lock = statement("lock", "SELECT 1 FROM counters WHERE name = $1::text FOR UPDATE");

const ended = Promise.resolve();

type Access = NonNullable<TransactionOptions["access"]>;

class Again {
  constructor(
    readonly error: StatementError,
    readonly isConflict: boolean,
  ) {}
}

const begins: Readonly<Record<Access, Call>> = {
  write: call({ name: "begin", text: "BEGIN" }),
  read: call({ name: "begin", text: "BEGIN READ ONLY" }),
  snapshot: call({ name: "begin", text: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY" }),
};
const commit = call({ name: "commit", text: "COMMIT" });
const rollback = call({ name: "rollback", text: "ROLLBACK" });

/**
 * The server itself ends work that no caller waits for anymore, and idle transactions that hold locks. Compiling a question would
 * take longer than its answer.
 */
const limits = (limitMs: Ms): Call =>
  call(
    {
      name: "limits",
      text: `SELECT set_config('idle_in_transaction_session_timeout', $1::text, true),
        set_config('lock_timeout', $2::text, true), set_config('statement_timeout', $3::text, true),
        set_config('jit', 'off', true)`,
    },
    idleInTransactionMs,
    Math.min(lockTimeoutMs, limitMs),
    limitMs,
  );

class OpenSession implements Session {
  /** Nothing more can be said on its connection. */
  isBroken = false;
  /** The end was under way when it broke. */
  isUnknown = false;
  readonly db: Queries = queriesOn((asked) => this.#one(asked));
  readonly #pace: Pace;
  readonly #access: Access;
  readonly #until: Ms;
  #connection: Connection | null = null;
  #isBegun = false;
  #atEnd: readonly Call[] = [];

  constructor(pace: Pace, access: Access, until: Ms) {
    this.#pace = pace;
    this.#access = access;
    this.#until = until;
  }

  begin(connection: Connection): void {
    this.#connection = connection;
  }

  async run(calls: readonly Call[]): Promise<readonly (readonly Row[])[]> {
    const first = this.#isBegun ? [] : [begins[this.#access], limits(Math.ceil(this.#left))];
    this.#isBegun = true;
    return (await this.#send([...first, ...calls])).slice(first.length);
  }

  atEnd(calls: readonly Call[]): void {
    this.#atEnd = [...this.#atEnd, ...calls];
  }

  async commit(): Promise<void> {
    if (!this.#isBegun && this.#atEnd.length === 0) return;
    this.isUnknown = true; // until it is known
    await this.run([...this.#atEnd, commit]);
    this.isUnknown = false;
  }

  /** Takes back what `work` began that threw, or read alone. Never rejects. */
  async rollBack(): Promise<void> {
    if (!this.#isBegun || this.isBroken || this.#connection === null) return;
    try {
      await this.#send([rollback]);
    } catch {
      this.isBroken = true; // its transaction ends with it
    }
  }

  get #left(): Ms {
    return Math.max(1, this.#until - this.#pace.monotonic());
  }

  async #one(asked: Call): Promise<readonly Row[]> {
    return (await this.run([asked]))[0]!;
  }

  async #send(calls: readonly Call[]): Promise<readonly (readonly Row[])[]> {
    let outcomes;
    try {
      outcomes = await limited(this.#pace, this.#connection!.send(calls), () => {}, this.#left);
    } catch (thrown) {
      this.isBroken = true;
      throw thrown;
    }
    const failed = outcomes.filter(isFailed);
    // What follows one that failed fails as well, so that the first says why.
    const error = failed[0];
    if (error === undefined) return outcomes as readonly (readonly Row[])[];
    if (failed.some(({ state }) => endsSession(state))) this.isBroken = true;
    if (isDefinite(error)) this.isUnknown = false;
    throw error;
  }
}

/** Drizzle's queries, whose rows come from `one`. */
const queriesOn = (one: (asked: Call) => Promise<readonly Row[]>) =>
  drizzle(async (text, parameters: unknown[], method) => {
    const asked = { statement: { name: text.slice(0, 40), text }, parameters: parameters.map(parameterOf) };
    return { rows: (await one({ ...asked, inArrays: method === "all" })) as Row[] };
  });

/** As text, which the server reads as what stands there: Bun.SQL would guess a type by the value. */
function parameterOf(value: unknown): string | null {
  if (value === null || value === undefined) return null;
  if (value instanceof Uint8Array) return `\\x${value.toHex()}`;
  if (typeof value === "string") return textParameter(value);
  if (typeof value === "number" || typeof value === "bigint" || typeof value === "boolean") return String(value);
  throw new TypeError("a query's parameter is a text, number, boolean or bytes");
}

/** Texts in PostgreSQL hold every character but one. */
export const textParameter = (text: string): string => text.replaceAll("\0", "\ufffd");

/** What a statement said, also where drizzle tells it in words of its own, with the parameters. */
function statementErrorOf(thrown: unknown): StatementError | null {
  if (thrown instanceof StatementError) return thrown;
  return thrown instanceof Error && thrown.cause instanceof StatementError ? thrown.cause : null;
}

const unavailable = (error: StatementError): StoreUnavailable =>
  new StoreUnavailable(`the database cannot be asked: ${error.message}`, { cause: error });

const isConflict = ({ state }: StatementError): boolean => state === "40001" || state === "40P01" || state === "55P03";

const endsSession = (state: string | null): boolean =>
  state === null || state === "25P03" || state.startsWith("08") || state.startsWith("57P");
