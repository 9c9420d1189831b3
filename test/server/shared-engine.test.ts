// What an engine that accounts share is sent about them: the salt of its prefix cache and the priority, with one thread and
// with two.
import { expect, test } from "bun:test";
import { GatewayProcess } from "../fixtures/gateway-process.ts";

/** A vLLM that remembers what it was sent. */
function sharedNode() {
  const sent: { cache_salt?: string; priority?: number }[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      if (request.method !== "POST")
        return Response.json({ object: "list", data: [{ id: "m", object: "model", owned_by: "vllm" }] });
      sent.push((await request.json()) as (typeof sent)[number]);
      const usage = { prompt_tokens: 1_000, completion_tokens: 1, prompt_tokens_details: { cached_tokens: 240 } };
      const events = [
        { choices: [{ index: 0, delta: { content: "a" }, finish_reason: "stop" }] },
        { choices: [], usage },
      ];
      return new Response(
        [...events.map((event) => JSON.stringify(event)), "[DONE]"].map((data) => `data: ${data}\n\n`).join(""),
        {
          headers: { "content-type": "text/event-stream" },
        },
      );
    },
  });
  return { sent, url: `http://127.0.0.1:${server.port}/v1`, [Symbol.dispose]: () => void server.stop(true) };
}

test.each([1, 2])(
  "accounts of a plan have one salt, and nobody or everybody else's, with %d threads",
  async (threads) => {
    using node = sharedNode();
    const rows = `[[nodes]]\nname = "box"\nurl = "${node.url}"\nslots = 4\n[server]\nshare_prefix_cache = `;
    await using gateway = await GatewayProcess.start({ config: `${rows}"plan"\n`, threads });
    const accounts = [
      await gateway.account(1e6, "pro"),
      await gateway.account(1e6, "pro"),
      await gateway.account(1e6, "plus"),
    ];
    const saltsOf = async () => {
      for (const { api_key } of [...accounts, ...accounts]) {
        // Each on a connection of its own, so that every thread gets some.
        const reply = await fetch(`${gateway.url}/v1/chat/completions`, {
          method: "POST",
          headers: { authorization: `Bearer ${api_key}`, connection: "close" },
          body: JSON.stringify({ model: "core-3", messages: [{ role: "user", content: "x" }] }),
        });
        expect([reply.status, await reply.text()]).toEqual([200, expect.stringContaining("a")]);
      }
      const salts = node.sent.splice(0).map(({ cache_salt }) => cache_salt);
      expect(salts.slice(0, 3)).toEqual(salts.slice(3));
      return salts.slice(0, 3);
    };
    const [one, other, plus] = await saltsOf();
    expect([one, plus]).toEqual([expect.any(String), expect.any(String)]);
    expect([other === one, plus === one]).toEqual([true, false]);
    const { findings } = await gateway.cli<{ findings: { what: string; detail: string }[] }>("doctor");
    expect(findings.find(({ what }) => what === "prefix caches")?.detail).toBe(
      "each plan has its own on box: a prompt that several plans send is read once for each; " +
        "core-3, with 3 accounts, had 24 % of its latest 6,000 input tokens cached",
    );
    await gateway.configure(`${rows}"account"\n`);
    await gateway.reload();
    expect(new Set(await saltsOf()).size).toBe(3);
    await gateway.configure(`${rows}true\n`);
    await gateway.reload();
    expect(await saltsOf()).toEqual([undefined, undefined, undefined]);
  },
  120_000,
);

test.each([1, 2])(
  "an engine that schedules by priority is sent it, and no other, with %d threads",
  async (threads) => {
    using node = sharedNode();
    const rows = `[[nodes]]\nname = "box"\nurl = "${node.url}"\nslots = 4\n`;
    await using gateway = await GatewayProcess.start({ config: rows, threads });
    const { api_key } = await gateway.account();
    const prioritiesOf = async () => {
      for (const priority of ["bulk", "standard", "bulk", "standard"]) {
        const reply = await fetch(`${gateway.url}/v1/chat/completions`, {
          method: "POST",
          headers: { authorization: `Bearer ${api_key}`, connection: "close", "x-priority": priority },
          body: JSON.stringify({ model: "core-3", messages: [{ role: "user", content: "x" }] }),
        });
        expect([reply.status, await reply.text()]).toEqual([200, expect.stringContaining("a")]);
      }
      return node.sent.splice(0).map(({ priority }) => priority);
    };
    expect(await prioritiesOf()).toEqual([undefined, undefined, undefined, undefined]);
    await gateway.configure(`${rows}priority_scheduling = true\n`);
    await gateway.reload();
    expect(await prioritiesOf()).toEqual([100, 0, 100, 0]);
  },
  120_000,
);
