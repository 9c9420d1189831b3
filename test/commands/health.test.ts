// tollgate health, as a container or a supervisor uses it.
import { expect, setDefaultTimeout, test } from "bun:test";
import { chat, run, Server, temporaryFolder } from "./program.ts";

setDefaultTimeout(120_000);

test("is 0 while the server takes requests, and 1 with a reason when there is none", async () => {
  using folder = temporaryFolder();
  const words = ["health", "--data", folder.path];
  expect(await run(words)).toEqual({
    code: 1,
    stdout: "",
    stderr: `tollgate: no server runs on the data folder ${folder.path}`,
  });
  const server = await Server.start(["--port", "0", "--data", folder.path]);
  await using _ = server;
  expect(await run(words)).toEqual({ code: 0, stdout: "ready", stderr: "" });
  expect((await run([...words, "--json"])).stdout).toBe('{"ready":true}');
  server.signal("SIGKILL");
  await server.ended();
  expect((await run(words)).code).toBe(1);
});

test("is 1 while the server stops, also where open streams may still end, and nothing is reloaded then", async () => {
  using folder = temporaryFolder();
  const goOn = Promise.withResolvers<void>();
  const event = (delta: object, reason: string | null = null): string =>
    `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: reason }] })}\n\n`;
  using node = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch({ method }) {
      if (method !== "POST") return Response.json({ object: "list", data: [] });
      async function* answer(): AsyncGenerator<string> {
        yield event({ content: "first" });
        await goOn.promise;
        yield `${event({}, "stop")}data: [DONE]\n\n`;
      }
      return new Response(answer() as never, { headers: { "content-type": "text/event-stream" } });
    },
  });
  const words = ["--port", "0", "--data", folder.path, "--node", `http://127.0.0.1:${node.port}/v1`];
  await using server = await Server.start(words);
  const [, key] = /API key +(sk-tg-\S+)/.exec(server.stdout)!;
  const open = await chat(server.url, key!, { stream: true });
  server.signal("SIGTERM");
  await server.says(/"event":"stopping"/);
  expect(await run(["health", "--data", folder.path])).toMatchObject({
    code: 1,
    stderr: "tollgate: the server accepts no requests: stopping",
  });
  expect(await run(["reload", "--data", folder.path])).toMatchObject({
    code: 1,
    stderr: "tollgate: the server is stopping",
  });
  goOn.resolve();
  expect(await open.text()).toEndWith("data: [DONE]\n\n");
  expect(await server.ended()).toBe(0);
});
