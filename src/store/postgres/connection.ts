// One connection to PostgreSQL, on which several statements are under way at once, and what its errors mean.
//
// Of Bun.SQL 1.4.5 we know: a connection that was reserved and broke stays broken, so that nothing of a transaction is
// carried out outside of it; a network that falls silent never rejects, so that every call needs a time limit of its own;
// COMMIT of a transaction that failed is no error, but says ROLLBACK.
import { addressesOf } from "../../core/database-addresses.ts";
import { connectTimeoutMs } from "./limits.ts";

export type Row = Readonly<Record<string, unknown>>;
/** What came back for one statement: its rows, or why it failed. */
export type StatementResult = readonly Row[] | StatementError;
/** A statement by its name, which tests and messages use, with parameters for `$1` and so on. */
export type Call = Readonly<{
  statement: Statement;
  parameters: readonly Parameter[];
  /** Its rows are wanted as arrays, as two columns of one name need it. */
  inArrays?: boolean;
}>;
export type Statement = Readonly<{
  name: string;
  text: string;
  /** Its columns are the same each time (those of a cursor are not), so that it is prepared also without parameters. */
  isPrepared?: boolean;
}>;
/** Everything travels as text, which the statements cast: Bun.SQL would guess types. */
export type Parameter = string | null;

/** Why a statement failed: `state` is its SQLSTATE, or null where the connection failed. */
export class StatementError extends Error {
  override readonly name = "StatementError";
  constructor(
    readonly state: string | null,
    message: string,
  ) {
    super(message);
  }
}

/** Whether it says that its transaction was taken back; a session that ends may say that of one that was committed. */
export const isDefinite = ({ state }: StatementError): boolean =>
  state !== null && state !== "25P03" && state !== "40003" && definiteClasses.has(state.slice(0, 2));
const definiteClasses: ReadonlySet<string> = new Set(["22", "23", "25", "40", "42", "53", "55"]);

export const isFailed = (outcome: StatementResult): outcome is StatementError => outcome instanceof StatementError;

export interface Connection {
  /**
   * Sends all calls at once; resolves when each has its outcome. Those behind one that failed in a transaction fail as
   * well, and a COMMIT that took the transaction back counts as failed. Never rejects; may never resolve.
   */
  send(calls: readonly Call[]): Promise<readonly StatementResult[]>;
  /** Lets go of it at once, whatever is under way. */
  close(): void;
}

export interface Server {
  /** Resolves with a connection that may write. Rejects with StatementError; may never settle. */
  connect(): Promise<Connection>;
}

export const call = (statement: Statement, ...parameters: readonly (string | number | null)[]): Call => ({
  statement,
  parameters: parameters.map((value) => (typeof value === "number" ? String(value) : value)),
});

/** An array as PostgreSQL reads it from text. */
export function arrayOf(values: readonly (string | number | boolean | null)[]): string {
  let text = "{";
  for (const [index, value] of values.entries()) {
    if (index > 0) text += ",";
    text += typeof value === "string" ? `"${value.replace(/["\\]/g, "\\$&")}"` : value === null ? "NULL" : value;
  }
  return `${text}}`;
}

type Results = readonly Row[] & { readonly command?: string | null };
type Query = Promise<Results> & { values(): Promise<Results> };
type Reserved = {
  (text: TemplateStringsArray): Query;
  unsafe(text: string, parameters: readonly Parameter[]): Query;
};

const lookForRecovery: Statement = { name: "recovery", text: "SELECT pg_is_in_recovery() AS standby" };

/** In the URL of a pooler that gives each transaction another session, such as PgBouncer. */
const unprepared = "prepare=false";

export class PostgresServer implements Server {
  /** Of one host each; that which took writes last is the first. */
  readonly #addresses: string[];

  constructor(url: string) {
    this.#addresses = [...addressesOf(url)];
  }

  async connect(): Promise<Connection> {
    for (let left = this.#addresses.length; ; left -= 1) {
      const address = this.#addresses[0]!;
      try {
        return await this.#connectTo(address);
      } catch (thrown) {
        // Tries the next, even if no caller waits for this one anymore.
        if (this.#addresses[0] === address) this.#addresses.push(this.#addresses.shift()!);
        if (left <= 1) throw thrown;
      }
    }
  }

  async #connectTo(address: string): Promise<Connection> {
    const connection = await PostgresConnection.open(address);
    // A pooler lets in whose server is away, and then says nothing.
    const silence = setTimeout(() => connection.close(), connectTimeoutMs);
    const [found] = await connection.send([call(lookForRecovery)]);
    clearTimeout(silence);
    if (found !== undefined && !isFailed(found) && found[0]?.["standby"] === false) return connection;
    connection.close();
    if (found !== undefined && isFailed(found)) throw found;
    throw new StatementError("25006", "it is a standby");
  }
}

class PostgresConnection implements Connection {
  readonly #pool: Bun.SQL;
  readonly #session: Reserved;

  private constructor(pool: Bun.SQL, session: Reserved) {
    this.#pool = pool;
    this.#session = session;
  }

  static async open(url: string): Promise<PostgresConnection> {
    // No idleTimeout and no maxLifetime: both end queries that are under way.
    const options = {
      url: url.replace(unprepared, ""),
      max: 1,
      idleTimeout: 0,
      maxLifetime: 0,
      connectionTimeout: connectTimeoutMs / 1000,
      prepare: !url.includes(unprepared),
    };
    let pool: Bun.SQL | null = null;
    try {
      pool = new Bun.SQL(options);
      return new PostgresConnection(pool, (await pool.reserve()) as unknown as Reserved);
    } catch (thrown) {
      pool?.close({ timeout: 0 }).catch(ignore);
      throw errorOf(thrown);
    }
  }

  async send(calls: readonly Call[]): Promise<readonly StatementResult[]> {
    return Promise.all(calls.map((each) => this.#one(each)));
  }

  close(): void {
    this.#pool.close({ timeout: 0 }).catch(ignore);
  }

  async #one({
    statement: { text, isPrepared = false },
    parameters,
    inArrays = false,
  }: Call): Promise<StatementResult> {
    try {
      const isTemplate = isPrepared && parameters.length === 0;
      const asked = isTemplate ? this.#session(templateOf(text)) : this.#session.unsafe(text, parameters);
      const rows = await (inArrays ? asked.values() : asked);
      if (text === "COMMIT" && rows.command === "ROLLBACK") return new StatementError("40000", "it was taken back");
      return rows;
    } catch (thrown) {
      return errorOf(thrown);
    }
  }
}

/**
 * `unsafe` sends what has no parameters as a simple query: parsed anew each time, and nothing is sent behind it before its
 * answer came. A template is prepared once and pipelined.
 */
function templateOf(text: string): TemplateStringsArray {
  let template = templates.get(text);
  if (template === undefined) {
    template = Object.defineProperty([text], "raw", { value: [text] }) as unknown as TemplateStringsArray;
    templates.set(text, template);
  }
  return template;
}
/** As many as there are such statements. */
const templates = new Map<string, TemplateStringsArray>();

const ignore = (): void => {};

/** SQLSTATE of an error of the server; what Bun says of the connection has none. */
function errorOf(thrown: unknown): StatementError {
  const { errno, message } = thrown as { errno?: unknown; message?: unknown };
  const state = typeof errno === "string" && /^[0-9A-Z]{5}$/.test(errno) ? errno : null;
  const said = typeof message === "string" ? message : "the connection failed";
  return new StatementError(state, state !== null && ofPoolers.has(state) ? `${said}: ${ofPooler}` : said);
}

/** A prepared statement that another client made in the session, or that was made in another one. */
const ofPoolers: ReadonlySet<string> = new Set(["42P05", "26000"]);
const ofPooler = "behind a pooler such as PgBouncer the address needs ?prepare=false at its end";
