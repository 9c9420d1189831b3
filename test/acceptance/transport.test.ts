// Keys, headers, paths and body limits, as seen by a client on a socket.
import { describe, expect, test } from "bun:test";
import { connect } from "node:net";
import { brotliCompressSync as brotli, constants, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { bodyOf as bodyOfDialect, endpoints, viewOf } from "../fixtures/client-view.ts";
import { eventually } from "../fixtures/eventually.ts";
import { asking, eachDialect } from "../fixtures/dialects.ts";
import { longForm } from "../fixtures/optional.ts";
import { type ErrorReply, refusalOf, says } from "../fixtures/requests.ts";
import { useStack } from "../fixtures/stack.ts";

const stack = useStack();
const threadsMax = 2; // of the runs of this suite
/** At its usual best it takes seconds. */
const brotliCompressSync = (text: string): Buffer => brotli(text, { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } });
const randomWords = (bytes: number): string =>
  Buffer.from(crypto.getRandomValues(new Uint8Array(60_000)))
    .toString("base64")
    .repeat(Math.ceil(bytes / 80_000));
const ask = (): Record<string, unknown> => says(stack.node.marker("text"));

const unauthorized = { type: "authentication_error", message: "Invalid API key provided" };
const tooLarge = { type: "invalid_request_error", message: "Request body larger than 32 MiB" };
const bodyBytesMax = 33_554_432;
/** The largest bodies, and every way in which they come, are sent in one dialect, in the longer form in all. */
const sendsAll = (endpoint: string): boolean => longForm || endpoint === endpoints[0];
let bomb: Uint8Array<ArrayBuffer> | null = null;
/** 64 MiB, once they are inflated. */
const bombOf = () => (bomb ??= new Uint8Array(gzipSync(Buffer.alloc(64 << 20))));

describe.each(eachDialect)("%s", (_, dialect) => {
  const text = (): string => JSON.stringify(asking(dialect, `hello [[${stack.node.marker("text")}]]`));
  const send = (
    headers: Record<string, string>,
    body: string | ReadableStream = text(),
    path: string = dialect.endpoint,
  ) => fetch(`${stack.gateway.url}${path}`, { method: "POST", headers, body });
  /** A valid request of exactly this many bytes. */
  function bodyOf(bytes: number): string {
    const [head = "", tail = ""] = text().split("hello ");
    return `${head}${"a".repeat(bytes - head.length - tail.length)}${tail}`;
  }

  test("a key is read from Authorization and from x-api-key, whatever the version headers say", async () => {
    const { api_key } = await stack.gateway.account();
    for (const key of [{ authorization: `Bearer ${api_key}` }, { "x-api-key": api_key }]) {
      for (const version of [
        {},
        ...["2023-06-01", "2026-10-21", "banana"].map((date) => ({ "anthropic-version": date })),
      ]) {
        const reply = await send({ ...key, ...version, "anthropic-beta": "x,y,z", "openai-beta": "x" } as never);
        expect(reply.status, await reply.text()).toBe(200);
      }
    }
  });

  test.each([
    ["no key", {}],
    ["an unknown key", { authorization: `Bearer sk-tg-${"x".repeat(43)}` }],
    ["an unknown key, as x-api-key", { "x-api-key": `sk-tg-${"x".repeat(43)}` }],
    ["an empty key", { authorization: "Bearer " }],
    ["an empty key, as x-api-key", { "x-api-key": "" }],
    ["another scheme", { authorization: "Basic c2s6" }],
    ["two different keys", { authorization: "Bearer a", "x-api-key": "b" }],
  ])("%s: 401 that clients do not try again", async (_, headers) => {
    const reply = await send(headers as Record<string, string>);
    expect(reply.headers.get("x-should-retry")).toBe("false");
    expect(await refusalOf(dialect, reply)).toEqual({ status: 401, ...dialect.error(unauthorized, "invalid_api_key") });
  });

  test("every reply carries its own request id under both names, never the client's", async () => {
    const account = await stack.gateway.account();
    const ids: string[] = [];
    for (let request = 0; request < 2; request++) {
      const mine = { authorization: `Bearer ${account.api_key}`, "x-request-id": "mine", "idempotency-key": "mine" };
      const reply = await send(mine);
      expect(reply.status, await reply.text()).toBe(200);
      ids.push(reply.headers.get("x-request-id")!);
      expect(reply.headers.get("request-id")).toBe(ids.at(-1)!);
    }
    expect(new Set([...ids, "mine"]).size).toBe(3);
    expect((await stack.gateway.usage(account.email)).map(({ request_id }) => request_id).sort()).toEqual(ids.sort());
  });

  test("a query string never changes the route; both base addresses are understood", async () => {
    const { api_key } = await stack.gateway.account();
    for (const path of [`${dialect.endpoint}?beta=true`, `${dialect.endpoint}?limit=1000`, ...dialect.aliases]) {
      const reply = await send({ authorization: `Bearer ${api_key}` }, text(), path);
      expect(reply.status, `${path}: ${await reply.text()}`).toBe(200);
    }
  });

  const unknown = [
    ["GET", ""],
    ["DELETE", ""],
    ["POST", "/nothing"],
    ["GET", "/nothing/else"],
  ] as const;
  test.each(unknown)(
    "%s of the address with %p behind it is a JSON 404 in the dialect's form",
    async (method, behind) => {
      const headers = { "x-api-key": (await stack.gateway.account()).api_key };
      const reply = await fetch(`${stack.gateway.url}${dialect.endpoint}${behind}`, { method, headers });
      const { status, type } = await refusalOf(dialect, reply);
      expect({ status, type }).toEqual({ status: 404, type: "not_found_error" });
    },
  );

  test.skipIf(!sendsAll(dialect.endpoint))("a body of exactly 32 MiB is read", async () => {
    const { api_key } = await stack.gateway.account();
    const reply = await send({ "x-api-key": api_key }, bodyOf(bodyBytesMax));
    // the prompt is far longer than the context; what matters here is that its size was not the reason
    expect(reply.status).not.toBe(413);
    await reply.text();
  });

  test.skipIf(!sendsAll(dialect.endpoint))("a body without its key is refused before its size matters", async () => {
    expect(await refusalOf(dialect, await send({}, bodyOf(bodyBytesMax + 1)))).toMatchObject({ status: 401 });
  });

  test.each(sendsAll(dialect.endpoint) ? ["content-length", "chunked"] : ["content-length"])(
    "one byte more is a 413 that the client can read, %s",
    async (framing) => {
      const account = await stack.gateway.account();
      const body = bodyOf(bodyBytesMax + 1);
      const reply = await send(
        { "x-api-key": account.api_key },
        framing === "chunked" ? new Blob([body]).stream() : body,
      );
      expect(await refusalOf(dialect, reply)).toEqual({ status: 413, ...dialect.error(tooLarge, "request_too_large") });
      await stack.gateway.expectUncharged(account);
    },
  );
});

describe("paths", () => {
  test.each(["/v1/nothing", "/v2/chat/completions", "/v1/chat", "/nothing"])("%s is a JSON 404", async (path) => {
    const account = await stack.gateway.account();
    for (const method of ["GET", "POST"]) {
      const reply = await fetch(`${stack.gateway.url}${path}`, {
        method,
        headers: { authorization: `Bearer ${account.api_key}` },
        ...(method === "POST" ? { body: "{}" } : {}),
      });
      expect(reply.status).toBe(404);
      expect(((await reply.json()) as ErrorReply).error.message).not.toBe("");
    }
  });

  test.each(["/", "/api/hello"])("HEAD %s answers a connectivity probe without a key", async (path) => {
    const reply = await fetch(`${stack.gateway.url}${path}`, { method: "HEAD" });
    expect(reply.status).toBe(200);
  });

  test("the model list satisfies both official clients' page readers, and its entries can be retrieved", async () => {
    const { api_key } = await stack.gateway.account();
    const headers = { "x-api-key": api_key };
    for (const query of ["?beta=true", "?limit=1000"]) {
      const asked = (await (await fetch(`${stack.gateway.url}/v1/models${query}`, { headers })).json()) as ModelList;
      expect(asked.data).toHaveLength(21);
    }
    const list = (await (await fetch(`${stack.gateway.url}/v1/models`, { headers })).json()) as ModelList;
    expect(list).toMatchObject({
      object: "list",
      has_more: false,
      first_id: list.data[0]?.id ?? "",
      last_id: list.data.at(-1)?.id ?? "",
    });
    expect(list.data).toHaveLength(21);
    for (const model of list.data) {
      expect(model).toMatchObject({ object: "model", type: "model", display_name: expect.any(String) });
      expect(model.context_window).toBeGreaterThanOrEqual(131_072);
      expect(model).toHaveProperty("reasoning_effort");
      const one = await fetch(`${stack.gateway.url}/v1/models/${model.id}`, { headers });
      expect(await one.json()).toEqual(model);
    }
    expect((await fetch(`${stack.gateway.url}/v1/models/core-99`, { headers })).status).toBe(404);
    expect((await fetch(`${stack.gateway.url}/v1/models`)).status).toBe(401);
  });
});

type ModelList = { data: ({ id: string; context_window: number } & Record<string, unknown>)[] };

describe("bodies", () => {
  test("an account's uploads beside each other take no more than a bounded room, whether they are slow or compressed, and none of others'", async () => {
    const [uploader, other] = [await stack.gateway.account(), await stack.gateway.account()];
    const url = new URL(stack.gateway.url);
    const large = 30_000_000;
    // Nothing of these bodies comes. With several threads, each has a room of its own.
    const uploads = Array.from({ length: 4 * 2 * threadsMax }, () => {
      const socket = connect(Number(url.port), url.hostname);
      socket.on("error", () => {}); // it is cut below
      socket.write(
        `POST /v1/tokenize HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${uploader.api_key}\r\ncontent-length: ${large}\r\n\r\n`,
      );
      return socket;
    });
    const refused = await new Promise<string>((resolve) => {
      for (const socket of uploads) socket.once("data", (bytes) => resolve(String(bytes)));
    });
    expect(refused).toStartWith("HTTP/1.1 429 ");
    expect(refused.toLowerCase()).toContain("retry-after: ");
    const inflating = new Uint8Array(gzipSync(JSON.stringify({ text: " ".repeat(900_000) })));
    const countOf = async ({ api_key }: { api_key: string }): Promise<number> => {
      const headers = { authorization: `Bearer ${api_key}`, "content-encoding": "gzip" };
      const reply = await fetch(`${stack.gateway.url}/v1/tokenize`, { method: "POST", headers, body: inflating });
      await reply.text();
      return reply.status;
    };
    expect(await countOf(other)).toBe(200);
    for (const socket of uploads) socket.destroy();
    await eventually("the room is given back", async () => (await countOf(uploader)) === 200);
  });

  const compressed = [
    ["gzip", gzipSync],
    ["deflate", deflateSync],
    ["br", brotliCompressSync],
    ["zstd", zstdCompressSync],
  ] as const;

  test.each(compressed)(
    "that are compressed by %s are answered as those that are not, small and large, streamed and not",
    async (encoding, compress) => {
      const account = await stack.gateway.account();
      const asks = endpoints.flatMap((endpoint) =>
        (sendsAll(endpoint) ? [0, 600_000] : [0]).flatMap((padding) =>
          [false, true].map((stream) => ({ endpoint, padding, stream })),
        ),
      );
      for (const { endpoint, padding, stream } of asks) {
        // Which only the thread that has the tools serves, and so is passed on by the others.
        const image = { type: "image_url", image_url: { url: "http://127.0.0.1:9/none.png" } };
        for (const passedOn of endpoint === "/v1/chat/completions" ? [false, true] : [false]) {
          const prompt = `[[${stack.node.marker("text")}]]`;
          const more = { stream, ...(padding === 0 ? {} : { padding: randomWords(padding) }) };
          const messages = [{ role: "user", content: [{ type: "text", text: prompt }, image] }];
          const body = bodyOfDialect(endpoint, "core-3", prompt, passedOn ? { ...more, messages } : more);
          const reply = await fetch(stack.gateway.url + endpoint, {
            method: "POST",
            headers: { authorization: `Bearer ${account.api_key}`, "content-encoding": encoding },
            body: new Uint8Array(compress(JSON.stringify(body))),
          });
          const view = viewOf(endpoint, stream, await reply.text());
          expect([endpoint, padding, stream, reply.status, view.text, view.complete]).toEqual([
            ...[endpoint, padding, stream],
            ...[200, "Hi there!", true],
          ]);
        }
      }
      const counted = { "/v1/tokenize": "count", "/v1/messages/count_tokens": "input_tokens" } as const;
      for (const [path, field] of Object.entries(counted)) {
        const asked = path === "/v1/tokenize" ? { text: "one two" } : ask();
        const counts = await Promise.all(
          [encoding, "identity"].map(async (encoding) => {
            const text = JSON.stringify(asked);
            const reply = await fetch(stack.gateway.url + path, {
              method: "POST",
              headers: { authorization: `Bearer ${account.api_key}`, "content-encoding": encoding },
              body: encoding === "identity" ? text : new Uint8Array(compress(text)),
            });
            return [reply.status, ((await reply.json()) as Record<string, unknown>)[field]];
          }),
        );
        expect([path, ...counts[0]!]).toEqual([path, 200, expect.any(Number)]);
        expect(counts[0]).toEqual(counts[1]!);
      }
    },
  );

  test.each(endpoints)(
    "that are damaged, or compressed in unknown ways, are refused in the shape of %s and cost nothing",
    async (endpoint) => {
      const account = await stack.gateway.account();
      const body = new Uint8Array(gzipSync(JSON.stringify(bodyOfDialect(endpoint, "core-3", "[[text]]"))));
      for (const [encoding, sent, status] of [
        ["gzip", body.slice(0, 60), 400],
        ["zstd", body, 400],
        ["gzip", bombOf(), 400],
        ["gzip, gzip", body, 415],
        ["compress", body, 415],
      ] as const) {
        const reply = await fetch(stack.gateway.url + endpoint, {
          method: "POST",
          headers: { authorization: `Bearer ${account.api_key}`, "content-encoding": encoding },
          body: sent,
        });
        const view = viewOf(endpoint, false, await reply.text());
        expect([encoding, reply.status, view.error?.type]).toEqual([encoding, status, "invalid_request_error"]);
        expect(view.faults).toEqual([]);
      }
      expect(await stack.gateway.usage(account.email)).toEqual([]);
    },
  );

  // Bun answers a second request on a connection only after the first; one that comes earlier ends the connection
  test("a second request that does not wait for the first reply is never answered with another's, and nothing leaks", async () => {
    const account = await stack.gateway.account();
    const markers = [stack.node.marker("slow"), stack.node.marker("slow")];
    const requests = markers.map((marker) => {
      const body = JSON.stringify(says(marker));
      return `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${account.api_key}\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
    });
    const url = new URL(stack.gateway.url);
    const replies = await new Promise<number>((resolve, reject) => {
      let text = "";
      const socket = connect(Number(url.port), url.hostname, () => socket.write(requests.join("")));
      socket.on("error", reject);
      socket.on("data", (bytes) => {
        text += bytes;
        if (text.split("HTTP/1.1 200").length === 3) socket.end();
      });
      socket.on("close", () => resolve(text.split("HTTP/1.1 ").length - 1));
    });
    expect([0, 2]).toContain(replies);
    await stack.gateway.expectNothingReserved();
    expect((await stack.gateway.usage(account.email)).length).toBeLessThanOrEqual(2);
  });
});
