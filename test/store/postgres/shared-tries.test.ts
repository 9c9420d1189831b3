// Tries to sign in, told among gateways on a real PostgreSQL.
import { expect, test } from "bun:test";
import type { TryEvent } from "../../../src/account/sign-in/sign-in-tries.ts";
import { signInWindowMs } from "../../../src/core/limits.ts";
import { PostgresServer } from "../../../src/store/postgres/connection.ts";
import { Database } from "../../../src/store/postgres/database.ts";
import { migrate } from "../../../src/store/postgres/migrations.ts";
import { SharedTries } from "../../../src/store/postgres/shared-tries.ts";
import { startDatabases } from "../../fixtures/postgres.ts";

const event = (name: string, what: TryEvent["what"] = "try"): TryEvent => ({
  what,
  name,
  pair: `pair ${name}`,
  place: "place",
  neighbors: "neighbors",
  isKnown: name === "known",
});

test("each try is heard once by each other gateway, and forgotten with its window", async () => {
  await using postgres = await startDatabases();
  const url = await postgres.database("tries");
  const server = new PostgresServer(url);
  const connection = await server.connect();
  await migrate(connection);
  connection.close();
  const database = new Database(server);
  const [one, other] = [new SharedTries(database, "one"), new SharedTries(database, "other")];
  const heard = async (tries: SharedTries) => (await tries.elsewhere()).map((each) => each.event);

  await one.tell(event("a"));
  await one.tell(event("known", "succeeded"));
  expect(await heard(other)).toEqual([event("a"), event("known", "succeeded")]);
  expect([await heard(other), await heard(one)]).toEqual([[], []]);
  await other.tell(event("b", "unchecked"));
  expect([await heard(other), await heard(one)]).toEqual([[], [event("b", "unchecked")]]);

  const [client, old] = [new Bun.SQL({ url, max: 1 }), Date.now() - signInWindowMs - 1];
  await client.unsafe("UPDATE sign_in_tries SET at = $1::text::bigint", [String(old)]);
  await one.tell(event("c"));
  expect((await client.unsafe("SELECT count(*)::int AS rows FROM sign_in_tries"))[0]).toEqual({ rows: 1 });
  const late = new SharedTries(database, "late"); // what it was not there for counts, too
  expect(await heard(late)).toEqual([event("c")]);
  expect((await late.elsewhere()).length).toBe(0);
  await client.close();
  await database.close();
}, 60_000);
