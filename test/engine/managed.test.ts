// A real engine that the gateway starts itself: it loads its model, answers, comes back after a crash, and ends with
// the gateway.
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync } from "node:fs";
import { eventually } from "../fixtures/eventually.ts";
import { GatewayProcess } from "../fixtures/gateway-process.ts";
import { engineCommand, engineMissing } from "./engine.ts";

setDefaultTimeout(120_000);

describe.skipIf(engineMissing)("an engine that the gateway starts", () => {
  test("answers, is started again after kill -9, and is gone with the gateway", async () => {
    const command = JSON.stringify(engineCommand(2, "{port}"));
    const gateway = await GatewayProcess.start({
      config: `[[nodes]]\nname = "own"\ncommand = ${command}\nslots = 2\n[nodes.models]\n"*" = "tiny"\n`,
    });
    const pidOfEngine = (): number => {
      const guard = [...gateway.output.matchAll(/"event":"a node is started".*?"pid":(\d+)/g)].at(-1)![1]!;
      const children = Bun.spawnSync(["pgrep", "-P", guard, "-f", "serve.py"]).stdout.toString();
      return Number(children.split("\n")[0]);
    };
    const answers = (times: number) =>
      eventually("the engine answers", async () => gateway.output.split('"a node answers"').length > times, 60_000);
    const ask = async (): Promise<string> => {
      const reply = await fetch(`${gateway.url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${gateway.operatorKey}` },
        body: JSON.stringify({ model: "core-3", max_tokens: 5, messages: [{ role: "user", content: "Hello" }] }),
      });
      const { choices } = (await reply.json()) as { choices?: { message: { content: string } }[] };
      return choices?.[0]?.message.content ?? "";
    };
    await answers(1);
    expect(await eventually("an answer", async () => (await ask()) || null)).not.toBe("");
    const first = pidOfEngine();
    process.kill(first, "SIGKILL");
    await answers(2);
    expect(await eventually("an answer after the crash", async () => (await ask()) || null, 30_000)).not.toBe("");
    const second = pidOfEngine();
    expect(second).not.toBe(first);
    await gateway[Symbol.asyncDispose]();
    await eventually("the engine is gone", async () => !existsSync(`/proc/${second}`), 30_000);
  });
});
