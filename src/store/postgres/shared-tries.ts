// Sign-in attempts, shared among gateways: a limit of ten attempts holds for all gateways together.
import type { TryEvent } from "../../account/sign-in/sign-in-tries.ts";
import { signInWindowMs } from "../../core/limits.ts";
import type { Ms } from "../../core/types.ts";
import { statement } from "../questions.ts";
import type { Database } from "./database.ts";

const now = "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
/** What another gateway has written and not committed yet is read the next time. */
const overlapMs = 5_000;
const readMax = 10_000;

const write = statement(
  "tell a try",
  `INSERT INTO sign_in_tries (id, gateway, at, what, pair, place, neighbors, name, known)
   VALUES ($1::text, $2::text, ${now}, $3::text, $4::text, $5::text, $6::text, $7::text, $8::text::boolean)`,
);
const forget = statement("forget tries", `DELETE FROM sign_in_tries WHERE at < ${now} - $1::text::bigint`);
const read = statement(
  "tries elsewhere",
  `SELECT id, at::float8 AS at, what, pair, place, neighbors, name, known, (${now} - at)::float8 AS ago
   FROM sign_in_tries WHERE at > $2::text::bigint AND gateway <> $1::text ORDER BY at, id LIMIT ${readMax}`,
);

type Row = TryEvent & Readonly<{ id: string; at: Ms; known: boolean; ago: Ms }>;

export class SharedTries {
  readonly #database: Database;
  readonly #gateway: string;
  /** Of the latest that were read, with their times. */
  #seen = new Map<string, Ms>();
  #readTo: Ms = 0;

  /** `gateway`: another for each process. */
  constructor(database: Database, gateway: string) {
    this.#database = database;
    this.#gateway = gateway;
  }

  async tell({ what, pair, place, neighbors, name, isKnown }: TryEvent): Promise<void> {
    const values = [crypto.randomUUID(), this.#gateway, what, pair, place, neighbors, name, String(isKnown)];
    await this.#database.change(async (send) => {
      await send(forget, signInWindowMs);
      return send(write, ...values);
    });
  }

  /** Since the last call. Rejects with StoreUnavailable. */
  async elsewhere(): Promise<readonly Readonly<{ event: TryEvent; agoMs: Ms }>[]> {
    const rows = await this.#database.ask<Row>(read, this.#gateway, this.#readTo - overlapMs);
    const fresh = rows.filter(({ id }) => !this.#seen.has(id));
    for (const { id, at } of fresh) this.#seen.set(id, at);
    this.#readTo = Math.max(this.#readTo, ...rows.map(({ at }) => at));
    for (const [id, at] of this.#seen) if (at <= this.#readTo - overlapMs) this.#seen.delete(id);
    return fresh.map(({ ago, what, pair, place, neighbors, name, known }) => ({
      event: { what, pair, place, neighbors, name, isKnown: known },
      agoMs: Math.max(0, ago),
    }));
  }
}
