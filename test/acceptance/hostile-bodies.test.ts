// Bodies made to be slow or large to read: refused in the dialect's form at no cost, or served without stopping
// anything else.
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { largeBodyMinBytes, smallBodyTokensMax } from "../../src/core/limits.ts";
import { post, says } from "../fixtures/requests.ts";
import { useStack } from "../fixtures/stack.ts";

const stack = useStack();

const endpoints = [
  "/v1/chat/completions",
  "/v1/messages",
  "/v1/responses",
  "/v1/responses/compact",
  "/v1/tokenize",
  "/v1/messages/count_tokens",
  "/v1/responses/input_tokens",
];
const length = 2_000_000;

test.each(
  endpoints.flatMap((path) => [
    [path, "brackets", "[".repeat(length), "too deep"] as const,
    [path, "objects", '{"a":'.repeat(length / 5), "too deep"] as const,
    [path, "a small body of brackets", "[".repeat(100_000), "too deep"] as const,
    [path, "endless lists", `[${"[],".repeat(2 * length)}[]]`, "too many values"] as const,
  ]),
)("%s: %s are refused at no cost", async (path, _, body, reason) => {
  const account = await stack.gateway.account();
  const response = await post(stack, account, body, { path });
  expect(response.status).toBe(400);
  const { error, type } = (await response.json()) as { error: { type: string; message: string }; type?: string };
  expect(error.type).toBe("invalid_request_error");
  expect(error.message).toContain(reason);
  if (path.startsWith("/v1/messages")) expect(type).toBe("error");
  const { allowance } = await stack.gateway.show(account.email);
  expect(allowance.left).toBe(allowance.granted);
});

/** Text of a call's arguments that is not JSON, and looks like one string without an end. */
const endless = `"${'\\"'.repeat(120_000)}`;

test.each(["/v1/chat/completions", "/v1/tokenize"])(
  "%s: arguments of an earlier call that are no JSON stop nothing",
  async (path) => {
    const account = await stack.gateway.account();
    const call = { id: "c", type: "function", function: { name: "f", arguments: endless } };
    const messages = [
      { role: "user", content: "a" },
      { role: "assistant", content: null, tool_calls: [call] },
      { role: "tool", tool_call_id: "c", content: "b" },
    ];
    // What counts tokens loads its tables first, for half a second of a processor.
    const plain = await post(stack, account, { model: "core-3", messages: messages.slice(0, 1) }, { path });
    expect([plain.status, (await plain.text()).length > 0]).toEqual([200, true]);
    const before = cpuMs();
    const response = await post(stack, account, { model: "core-3", messages }, { path });
    expect(response.status).toBe(200);
    await response.text();
    expect(cpuMs() - before).toBeLessThan(1_500); // with the square of its length it takes tens of seconds
  },
);

test("a small body of many values is answered like any other", async () => {
  const account = await stack.gateway.account();
  const marker = stack.node.marker("text");
  const body = says(marker, { unknown: Array.from({ length: smallBodyTokensMax + 1 }, () => 1) });
  expect(JSON.stringify(body).length).toBeLessThan(largeBodyMinBytes);
  const response = await post(stack, account, body);
  expect(response.status).toBe(200);
  expect(JSON.stringify(await response.json())).toContain("Hi there!");
});

/** Of the gateway's process so far, in its own threads; 0 where the system does not tell. */
function cpuMs(): number {
  if (process.platform !== "linux") return 0;
  const fields = readFileSync(`/proc/${stack.gateway.pid}/stat`, "utf8").split(") ")[1]!.split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
}
