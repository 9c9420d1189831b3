// What counting refuses when too much is waiting, and how each dialect words the refusal.
import { by } from "../fixtures/principals.ts";
import { afterAll, expect, test } from "bun:test";
import { embeddedCatalog } from "../../src/core/catalog.ts";
import { systemClock } from "../../src/core/clock.ts";
import { chatCompletions } from "../../src/dialects/chat/chat-completions.ts";
import { messages } from "../../src/dialects/messages/messages.ts";
import { Dialects } from "../../src/dialects/registry.ts";
import { KeyHeaders } from "../../src/http/key-headers.ts";
import { TokenRoutes } from "../../src/http/token-routes.ts";
import { TokenCounter } from "../../src/tokens/counter.ts";
import { TokenCounts } from "../../src/tokens/node-count.ts";
import { headOf } from "../fixtures/reading.ts";
import { eventually } from "../fixtures/eventually.ts";

const room = { places: 8, bytes: 1_000_000, accountPlaces: 2, accountBytes: 500_000 };
const counter = new TokenCounter({ log: () => {}, room });
afterAll(() => counter.close());

const dialects = new Dialects({ sealingKey: new Uint8Array(32), clock: systemClock, storesResponses: false });
const routes = new TokenRoutes(
  {
    keys: { principal: (key) => ({ one: by(1), other: by(2) })[key] ?? null },
    catalog: embeddedCatalog(),
    storedResponses: null,
    admission: { refuseModel: () => null },
    keyHeaders: new KeyHeaders(["x-api-key"]),
    dialects,
    clock: systemClock,
  },
  new TokenCounts(counter, null, systemClock),
  null,
  null,
);

const post = (key: string, body: object) =>
  new Request("http://localhost/", { method: "POST", headers: { "x-api-key": key }, body: JSON.stringify(body) });
const count = (request: Request) =>
  routes.countInput(request, null, headOf(messages), messages, (tokens) => ({ input_tokens: tokens }));
const tokenize = (key: string, text: string) => routes.tokenize(post(key, { text }), null, chatCompletions);

test("beyond its room an account's counts are busy, to be tried again later; another's are answered meanwhile", async () => {
  const waiting = [tokenize("one", "a ".repeat(100_000)), tokenize("one", "b ".repeat(100_000))];
  await eventually("both wait", async () => counter.waiting.places === 2);
  const [refused, ofMessages, others] = await Promise.all([
    tokenize("one", "one more"),
    count(post("one", { model: "core-3", messages: [{ role: "user", content: "x" }] })),
    tokenize("other", "one more"),
  ]);
  for (const reply of [refused, ofMessages]) {
    expect(reply.status).toBe(429);
    expect(Number(reply.headers.get("retry-after"))).toBeGreaterThan(0);
  }
  const message = "Routes are temporarily busy. Please retry.";
  expect(await refused.json()).toMatchObject({ error: { type: "rate_limit_error", message } });
  expect(await ofMessages.json()).toMatchObject({ type: "error", error: { type: "rate_limit_error", message } });
  expect(await others.json()).toMatchObject({ count: 2 });
  for (const reply of await Promise.all(waiting)) expect(await reply.json()).toMatchObject({ count: 100_001 });
  expect((await tokenize("one", "one more")).status).toBe(200);
});
