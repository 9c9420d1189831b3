// The steps of a fetch with scripted names and servers: which address is dialed for what, and what ends it.
import { describe, expect, test } from "bun:test";
import { AccountTurns } from "../../../src/core/account-turns.ts";
import type { exchange, ExchangeResult } from "../../../src/tools/fetch/public-exchange.ts";
import { ExchangeFailed } from "../../../src/tools/fetch/public-fetch.ts";
import { PublicFetchClient } from "../../../src/tools/fetch/public-fetch-client.ts";
import { type FetchOptions, FetchRefused } from "../../../src/tools/fetch/public-fetch.ts";

const stays = new AbortController().signal;
const options: FetchOptions = { account: 1, bytesMax: 100, timeoutMs: 10_000, redirectsMax: 5, accept: "*/*" };
const body = Buffer.from("body");
const reply = (status: number, headers: Record<string, string> = {}): ExchangeResult => ({
  status,
  headers: new Map(Object.entries(headers)),
  body,
});

/** A client for which every name is `addresses`, and every server gives the next of `replies`. */
function world(addresses: readonly string[], ...replies: (ExchangeResult | Error)[]) {
  const dialed: string[] = [];
  const lookedUp: string[] = [];
  const ask: typeof exchange = async (address, { port, tlsName, host, target }) => {
    dialed.push(`${address} ${port} ${tlsName ?? "clear"} ${host}${target}`);
    const next = replies.length > 1 ? replies.shift()! : replies[0]!;
    if (next instanceof Error) throw next;
    return next;
  };
  const resolve = async (name: string) => {
    lookedUp.push(name);
    return addresses;
  };
  return { dialed, lookedUp, client: new PublicFetchClient({ resolve, ask, turns: new AccountTurns(2, 1) }) };
}
const refused = (promise: Promise<unknown>) => expect(promise).rejects.toThrow(FetchRefused);

describe("what is dialed", () => {
  test("a judged address, with the name for host and certificate, after one look", async () => {
    const { client, dialed, lookedUp } = world(["8.8.4.4", "2606:4700::1"], reply(200));
    await client.get("https://Pictures.com./a%20b?c=d#e", options, stays);
    expect(dialed).toEqual(["8.8.4.4 443 pictures.com pictures.com./a%20b?c=d"]);
    expect(lookedUp).toEqual(["pictures.com"]);
  });

  test("the next address where one is not reached, at most four, and no other once something was said", async () => {
    const unreached = new ExchangeFailed("refused", true);
    const many = ["8.0.0.1", "8.0.0.2", "8.0.0.3", "8.0.0.4", "8.0.0.5"];
    const second = world(many, unreached, reply(200));
    await second.client.get("http://a.com/", options, stays);
    expect(second.dialed).toHaveLength(2);
    const none = world(many, unreached);
    await refused(none.client.get("http://a.com/", options, stays));
    expect(none.dialed).toHaveLength(4);
    const said = world(many, new ExchangeFailed("broken", false));
    await refused(said.client.get("http://a.com/", options, stays));
    expect(said.dialed).toHaveLength(1);
  });

  test("nothing where one of the addresses is not public, and where there is none", async () => {
    for (const addresses of [["8.8.4.4", "10.0.0.1"], ["10.0.0.1"], ["not an address"], []]) {
      const { client, dialed } = world(addresses, reply(200));
      await refused(client.get("http://a.com/", options, stays));
      expect(dialed).toEqual([]);
    }
  });

  test("an address that is written out, without a look", async () => {
    const { client, dialed, lookedUp } = world([], reply(200));
    await client.get("https://[2606:4700::1]:8443/", options, stays);
    expect(dialed).toEqual(["2606:4700:0:0:0:0:0:1 8443 2606:4700::1 [2606:4700::1]:8443/"]);
    expect(lookedUp).toEqual([]);
  });
});

describe("redirects", () => {
  test("are looked up and judged anew, five of them", async () => {
    const to = (location: string) => reply(302, { location });
    const ways = [to("/b"), to("//other.com/c"), to("https://third.com/"), to("?d"), to("http://fourth.com:8080/e")];
    const { client, lookedUp } = world(["8.8.4.4"], ...ways, reply(200));
    expect((await client.get("http://a.com/a", options, stays)).url).toBe("http://fourth.com:8080/e");
    expect(lookedUp).toEqual(["a.com", "a.com", "other.com", "third.com", "third.com", "fourth.com"]);
    await refused(world(["8.8.4.4"], to("/again")).client.get("http://a.com/", options, stays));
    await refused(world(["8.8.4.4"], to("ftp://a.com/")).client.get("http://a.com/", options, stays));
    await refused(world(["8.8.4.4"], reply(302)).client.get("http://a.com/", options, stays));
  });
});

describe("answers", () => {
  test.each([
    [undefined, "", null],
    ["text/html", "text/html", null],
    ["Text/HTML; Charset=UTF-8", "text/html", "utf-8"],
    ['text/plain; a=b; charset="ISO-8859-1"', "text/plain", "iso-8859-1"],
  ])("of content-type %j", async (header, mediaType, charset) => {
    const headers: Record<string, string> = header === undefined ? {} : { "content-type": header };
    const { client } = world(["8.8.4.4"], reply(200, headers));
    expect(await client.get("http://a.com/", options, stays)).toMatchObject({ mediaType, charset, bytes: body });
  });

  test.each([404, 500, 204, 304, 206])("of status %d are none", async (status) =>
    refused(world(["8.8.4.4"], reply(status)).client.get("http://a.com/", options, stays)),
  );

  test("a fault of ours is not hidden", () =>
    expect(world(["8.8.4.4"], new TypeError("bug")).client.get("http://a.com/", options, stays)).rejects.toThrow(
      "bug",
    ));
});

describe("turns and time", () => {
  test("an account waits for its turn, and its time runs", async () => {
    const held = Promise.withResolvers<readonly string[]>();
    const client = new PublicFetchClient({
      resolve: () => held.promise,
      ask: async () => reply(200),
      turns: new AccountTurns(2, 1),
    });
    const first = client.get("http://a.com/", options, stays);
    await refused(client.get("http://a.com/", { ...options, timeoutMs: 5 }, stays));
    held.resolve(["8.8.4.4"]);
    expect((await first).bytes).toEqual(body);
    expect((await client.get("http://a.com/", options, stays)).bytes).toEqual(body);
  });
});
