// One delivery: what the receiver gets, verified with the official library of Standard Webhooks, and what is said of one that
// does not take it. Real servers, real sockets.
import { describe, expect, test } from "bun:test";
import { Webhook } from "standardwebhooks";
import type { WebhookConfig } from "../../src/config/webhooks.ts";
import { readConfig } from "../../src/config/config.ts";
import { type Notice, noticeEvents } from "../../src/core/notice.ts";
import { postNotice, reachWebhook } from "../../src/notices/post.ts";

const secret = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
const notice: Notice = {
  id: "msg_1",
  event: "node.down",
  at: Date.UTC(2026, 2, 28, 12),
  content: () => ({ text: "The node <!channel> & @everyone is down.", data: { node: "gpu", since: "now" } }),
};

type Got = Readonly<{ body: string; headers: Record<string, string> }>;

/** A receiver, and what it got. */
class Receiver implements Disposable {
  readonly got: Got[] = [];
  readonly #server: Bun.Server<undefined>;

  constructor(answer: (request: Request) => Response | Promise<Response> = () => new Response("ok")) {
    this.#server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: async (request) => {
        this.got.push({ body: await request.text(), headers: Object.fromEntries(request.headers) });
        return answer(request);
      },
    });
  }

  webhook(more: Partial<WebhookConfig> = {}): WebhookConfig {
    const url = `${this.#server.url}hooks/T0?key=of-the-address`;
    return { name: "ops", url, host: "127.0.0.1", secret, format: "json", events: noticeEvents, ...more };
  }

  [Symbol.dispose](): void {
    void this.#server.stop(true);
  }
}

describe("what a receiver gets", () => {
  test("is signed so that the official verifier takes it, and nothing else than it", async () => {
    using receiver = new Receiver();
    expect(await postNotice(receiver.webhook(), notice, Date.now())).toBeNull();
    const [{ body, headers }] = receiver.got as [Got];
    const verifier = new Webhook(secret);
    expect(verifier.verify(body, headers)).toEqual({
      type: "node.down",
      timestamp: "2026-03-28T12:00:00.000Z",
      text: "The node <!channel> & @everyone is down.",
      data: { node: "gpu", since: "now" },
    });
    expect(headers["webhook-id"]).toBe("msg_1");
    expect(() => verifier.verify(body.replace("gpu", "cpu"), headers)).toThrow();
    expect(() => verifier.verify(body, { ...headers, "webhook-id": "msg_2" })).toThrow();
    const other = new Webhook(`whsec_${Buffer.alloc(32, 8).toString("base64")}`);
    expect(() => other.verify(body, headers)).toThrow();
  });

  test("is refused by the verifier where it is old: each try has a time of its own", async () => {
    using receiver = new Receiver();
    await postNotice(receiver.webhook(), notice, Date.now() - 10 * 60_000);
    const [{ body, headers }] = receiver.got as [Got];
    expect(() => new Webhook(secret).verify(body, headers)).toThrow("too old");
  });

  test("is what chats take, and calls nobody by a name in it", async () => {
    using receiver = new Receiver();
    await postNotice(receiver.webhook({ format: "slack", secret: null }), notice, Date.now());
    await postNotice(receiver.webhook({ format: "discord", secret: null }), notice, Date.now());
    const [slack, discord] = receiver.got.map(({ body }) => JSON.parse(body) as unknown);
    expect(slack).toEqual({ text: "The node &lt;!channel&gt; &amp; @everyone is down." });
    expect(discord).toEqual({ content: "The node <!channel> & @everyone is down.", allowed_mentions: { parse: [] } });
    expect(receiver.got[0]!.headers["webhook-signature"]).toBeUndefined();
    const long: Notice = { ...notice, content: () => ({ text: "x".repeat(50_000), data: {} }) };
    await postNotice(receiver.webhook({ format: "discord" }), long, Date.now());
    expect((JSON.parse(receiver.got[2]!.body) as { content: string }).content.length).toBeLessThan(2_000);
  });
});

describe("who does not take it", () => {
  test("a redirect is not followed", async () => {
    using inside = new Receiver();
    using receiver = new Receiver(() => Response.redirect(inside.webhook().url, 307));
    const problem = await postNotice(receiver.webhook(), notice, Date.now());
    expect(problem).toBe("it answered 307, a redirect, which is not followed");
    expect(inside.got).toEqual([]);
  });

  test("an error, an answer without an end, and nobody there are told without the address", async () => {
    using broken = new Receiver(() => new Response("of-the-address", { status: 500 }));
    expect(await postNotice(broken.webhook(), notice, Date.now())).toBe("it answered 500");
    let left = false;
    using endless = new Receiver(() => {
      const pull = async (controller: ReadableStreamDefaultController<string>) => {
        await Bun.sleep(1);
        controller.enqueue("x".repeat(1_000));
      };
      return new Response(new ReadableStream<string>({ pull, cancel: () => void (left = true) }) as never);
    });
    expect(await postNotice(endless.webhook(), notice, Date.now())).toBeNull();
    while (!left) await Bun.sleep(1); // its body is not read
    const gone = new Receiver();
    const webhook = gone.webhook();
    gone[Symbol.dispose]();
    for (const problem of [await postNotice(webhook, notice, Date.now()), await reachWebhook(webhook)]) {
      expect(problem).toBe("it cannot be reached: ECONNREFUSED");
    }
    expect(await reachWebhook({ ...webhook, url: "http://nowhere.invalid/key" })).not.toContain("key");
    expect(await reachWebhook(broken.webhook())).toBeNull();
  });
});

describe("the configuration", () => {
  const read = (toml: string, environment: Record<string, string> = {}) =>
    readConfig("gate.toml", `[[webhooks]]\nname = "ops"\n${toml}`, {}, environment).webhooks[0]!;

  test("has the address and the secret from variables, which no log shows", () => {
    const environment = { HOOK: "https://hooks.example.com/T0/B0/x", HOOK_SECRET: secret };
    const toml = 'url_env = "HOOK"\nsecret_env = "HOOK_SECRET"\nformat = "slack"\nevents = ["node.down"]';
    expect(read(toml, environment)).toEqual({
      name: "ops",
      url: environment.HOOK,
      host: "hooks.example.com",
      secret,
      format: "slack",
      events: ["node.down"],
    });
    const { keys } = readConfig("gate.toml", `[[webhooks]]\nname = "ops"\n${toml}`, {}, environment);
    expect(keys).toEqual([environment.HOOK, secret]);
    expect(read('url = "http://10.0.0.5:8080/hook"')).toMatchObject({
      format: "json",
      events: noticeEvents,
      secret: null,
    });
  });

  test.each([
    ["no address", "", "webhooks[0].url is missing"],
    [
      "what is no address",
      'url = "hooks.example.com/key-of-it"',
      "must be an http:// or https:// address without user",
    ],
    [
      "a user in it",
      'url = "https://a:b@example.com/key-of-it"',
      "must be an http:// or https:// address without user",
    ],
    ["a short secret", 'url = "http://a"\nsecret = "key-of-it"', "must be whsec_ and 24 to 64 bytes in base64"],
    ["an unknown event", 'url = "http://a"\nevents = ["node.gone"]', "events"],
    ["no event", 'url = "http://a"\nevents = []', "events"],
    ["an unknown format", 'url = "http://a"\nformat = "teams"', '"json", "slack", "discord"'],
    ["a name twice", 'url = "http://a"\n[[webhooks]]\nname = "ops"\nurl = "http://b"', "must be unique"],
  ])("is refused with %s, and no secret is repeated", (_, toml, message) => {
    expect(() => read(toml)).toThrow(message);
    try {
      read(toml);
    } catch (error) {
      expect((error as Error).message).not.toContain("key-of-it");
    }
  });
});
