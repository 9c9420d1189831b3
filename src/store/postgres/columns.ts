// Types of columns that several tables of the ledger in PostgreSQL have.
import { bigint, customType } from "drizzle-orm/pg-core";

export const hash = customType<{ data: Uint8Array }>({ dataType: () => "bytea" });
/** Money, times and ids: 8 bytes, numbers below 2^53. */
export const whole = (name?: string) =>
  name === undefined ? bigint({ mode: "number" }) : bigint(name, { mode: "number" });
