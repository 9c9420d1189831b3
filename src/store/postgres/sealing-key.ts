// The key that seals what clients carry for us, and that browsers are known by: one for all gateways, made by the first.
import { call, type Statement } from "./connection.ts";
import type { Database } from "./database.ts";

const find: Statement = {
  name: "find sealing key",
  text: "SELECT encode(sealing_key, 'base64') AS key FROM ledger_meta WHERE id = 1 FOR UPDATE",
};
const keep: Statement = {
  name: "keep sealing key",
  text: "UPDATE ledger_meta SET sealing_key = decode($1::text, 'base64') WHERE id = 1",
};

/** `bytes` long. Rejects with StoreUnavailable. */
export function sharedSealingKey(database: Database, bytes: number): Promise<Uint8Array> {
  return database.transaction(async (session) => {
    const [rows] = await session.run([call(find)]);
    const known = rows![0]!["key"] as string | null;
    if (known !== null) return Uint8Array.fromBase64(known);
    const made = crypto.getRandomValues(new Uint8Array(bytes));
    await session.run([call(keep, made.toBase64())]);
    return made;
  });
}
