// What the console and commands ask of accounts, on each store that has it: in memory beside SQLite, and on PostgreSQL.
import { Passwords } from "../../src/account/sign-in/passwords.ts";
import { assert } from "../../src/core/assert.ts";
import { PostgresServer } from "../../src/store/postgres/connection.ts";
import { Database } from "../../src/store/postgres/database.ts";
import { migrate } from "../../src/store/postgres/migrations.ts";
import { PostgresOffice, PostgresSessions } from "../../src/store/postgres/office.ts";
import { postgresTables } from "../../src/store/postgres/schema.ts";
import { getTableConfig } from "drizzle-orm/pg-core";
import { type Databases, startDatabases } from "../fixtures/postgres.ts";
import { Desks } from "./desks.ts";
import { cheapHasher, noon, Office, plans } from "./office.ts";

export type AnyOffice = Pick<
  Desks,
  "units" | "accounts" | "accountKeys" | "sessions" | "purchases" | "auditLog" | "links" | "identities"
>;

/** `now` is the clock of all its offices. */
export type Opened = Readonly<{
  office: AnyOffice;
  /** The same books after a restart, or by another gateway. */
  another(): AnyOffice;
  time: { now: number };
  /** As the store keeps them. */
  rows(text: string): Promise<readonly Readonly<Record<string, unknown>>[]>;
}>;

export type Store = Readonly<{
  name: string;
  begin(): Promise<void>;
  end(): Promise<void>;
  /** Empty books. */
  open(): Promise<Opened>;
}>;

const sqlite: Store = {
  name: "SQLite",
  begin: async () => {},
  end: async () => {},
  async open() {
    let latest = new Office();
    const time = {
      get now() {
        return latest.now;
      },
      set now(now) {
        latest.now = now;
      },
    };
    return {
      office: latest,
      another: () => (latest = latest.restart()),
      time,
      rows: async (text) => latest.database.query(text).all() as Record<string, unknown>[],
    };
  },
};

export class PostgresStore<Server extends Databases = Databases> implements Store {
  readonly name = "PostgreSQL";
  readonly #databases: Database[] = [];
  server: Server | null = null;
  #client: Bun.SQL | null = null;

  constructor(
    readonly start: () => Promise<Server>,
    readonly missing = false,
  ) {}

  async begin(): Promise<void> {
    this.server = await this.start();
    const connection = await new PostgresServer(this.server.url()).connect();
    await migrate(connection);
    connection.close();
    this.#client = new Bun.SQL({ url: this.server.url(), max: 1 });
  }

  async end(): Promise<void> {
    for (const database of this.#databases.splice(0)) await database.close();
    await this.#client?.close({ timeout: 0 });
    await this.server?.[Symbol.asyncDispose]();
  }

  async open(): Promise<Opened> {
    for (const database of this.#databases.splice(0)) await database.close();
    const tables = postgresTables.map(({ table }) => getTableConfig(table).name);
    await this.#client!.unsafe(`TRUNCATE ${tables.join(", ")}`);
    const time = { now: noon };
    const another = () => this.office(time);
    return { office: another(), another, time, rows: (text) => this.rows(text) };
  }

  rows(text: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
    return this.#client!.unsafe(text);
  }

  /** One more gateway; `url`: on its own way to the server. */
  office(time: { now: number }, url?: string, passwords = new Passwords(cheapHasher)): AnyOffice {
    assert(this.server !== null, "the server was started");
    const database = new Database(new PostgresServer(url ?? this.server.url()));
    this.#databases.push(database);
    const clock = { wall: () => time.now, monotonic: () => 0 };
    const units = new PostgresOffice({ database, catalog: { plans }, clock });
    return new Desks(units, passwords, new PostgresSessions(database));
  }
}

export const stores: readonly Store[] = [sqlite, new PostgresStore(startDatabases)];

export const caught = (work: unknown): Promise<Error> =>
  Promise.resolve(work).then(
    () => new Error("nothing was thrown"),
    (thrown: unknown) => thrown as Error,
  );

/** The same where the office in memory throws at once. */
export const caughtBy = (work: () => unknown): Promise<Error> => caught((async () => await work())());
