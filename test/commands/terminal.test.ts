// What a node says of itself reaches the operator's terminal as text: no control, no change of direction, no line of its own.
import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import { run, Server, temporaryFolder } from "./program.ts";

setDefaultTimeout(120_000);

const hostile = "\u001b]0;title\u0007\u001b[31m\u202eevil\u009b2J\u2066\u200f\r\nPROBLEM  forged";
const node = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch(request) {
    const { pathname } = new URL(request.url);
    if (pathname === "/v1/models") {
      const models = ["core-3", "mod\u202eel", "\u001b[31mred"];
      return Response.json({
        data: models.map((id) => ({ id, object: "model", owned_by: hostile, max_model_len: 4_096 })),
      });
    }
    if (pathname.endsWith("/version")) return Response.json({ version: `0.9${hostile}` });
    return Response.json(
      {
        error: {
          message: `CUDA out of memory ${hostile} for ${request.headers.get("authorization")} sk-proj-abcdefghijklmnop`,
          type: hostile,
        },
      },
      { status: 500 },
    );
  },
});
afterAll(() => node.stop(true));

test("by every command that prints it, the first lines of the server and its log", async () => {
  using folder = temporaryFolder();
  const data = ["--data", folder.path];
  const at = ["--node", `http://127.0.0.1:${node.port}`, ...data];
  const printed: string[] = [];
  const asked = async (...words: string[]): Promise<string> => {
    const { stdout, stderr } = await run(words);
    printed.push(stdout, stderr);
    return stdout;
  };
  await asked("check", ...at);
  await asked("models", "suggest", ...at);
  const server = await Server.start(["--port", "0", ...at]);
  await using _server = server;
  const { api_key: key } = JSON.parse(
    await asked("accounts", "create", "a@example.com", "--plan", "pro", "--json", ...data),
  );
  const reply = await fetch(`${server.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify({ model: "core-3", messages: [{ role: "user", content: "hi" }] }),
  });
  expect([reply.status, await reply.text()]).toEqual([500, expect.not.stringContaining("CUDA")]);
  const table = await asked("nodes", ...data);
  expect(table).toContain("CUDA out of memory");
  expect(table).not.toMatch(/^PROBLEM/m);
  for (const words of [["nodes", "--json"], ["models"], ["requests"], ["doctor"]]) await asked(...words, ...data);
  for (const text of [...printed, server.stdout, server.stderr]) expect(text).not.toMatch(/[^\x20-\x7e\n\t]/);
  expect(server.stderr).toContain("CUDA out of memory");

  // Why it failed stands with the request, for operators alone, without the key and the words of the prompt.
  const [failed] = JSON.parse(await asked("requests", "--json", ...data)) as { cause: string }[];
  expect(failed!.cause).toStartWith("status 500: CUDA out of memory ");
  expect(failed!.cause).not.toContain("sk-");
  const line = server.stderr.split("\n").find((text) => text.includes('"request failed"'))!;
  expect(JSON.parse(line)).toMatchObject({ requestId: reply.headers.get("x-request-id"), cause: failed!.cause });
});
