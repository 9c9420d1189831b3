// The console is loaded with the first request to it: once, however many come, and again where it failed.
import { expect, test } from "bun:test";
import { Elysia } from "elysia";
import { lazyConsole } from "../../src/console/lazy-console.ts";
import type { Site } from "../../src/http/site.ts";

const site: Site = {
  routes: new Elysia().all("/*", ({ request }) => new Response(new URL(request.url).pathname)),
  accountOf: () => null,
  close() {},
};
const send = async (lazy: Site, path: string, method = "GET"): Promise<string> => {
  const app = new Elysia()
    .onError(() => new Response("failed", { status: 500 }))
    .use(lazy.routes)
    .all("/*", () => "elsewhere");
  return (await app.handle(new Request(`http://localhost${path}`, { method }))).text();
};

test("it answers at its own addresses alone, and others do not load it", async () => {
  let opened = 0;
  const lazy = lazyConsole(() => Promise.resolve((opened += 1)).then(() => site), "stripe");
  const others = [
    "/console/webhooks/other",
    "/console/webhooks/",
    "/console/webhooks/stripe/x",
    "/console/webhooks/%73tripe",
  ];
  for (const path of [...others, "/v1/x"]) expect([path, await send(lazy, path, "POST")]).toEqual([path, "elsewhere"]);
  expect(opened).toBe(0);
  const own = ["/console/webhooks/stripe", "/console/api/session"];
  expect(await Promise.all(own.map((path) => send(lazy, path, "POST")))).toEqual(own);
  expect(opened).toBe(1);
});

test("it has no address for payments where none are configured", async () => {
  const lazy = lazyConsole(() => Promise.resolve(site), null);
  expect(await send(lazy, "/console/webhooks/stripe", "POST")).toBe("elsewhere");
});

test("a load that failed is tried again with the next request", async () => {
  let tries = 0;
  const lazy = lazyConsole(() => ((tries += 1) === 1 ? Promise.reject(new Error("no")) : Promise.resolve(site)), null);
  expect(await send(lazy, "/console/api/session")).toBe("failed");
  expect(await send(lazy, "/console/api/session")).toBe("/console/api/session");
  expect(tries).toBe(2);
});
