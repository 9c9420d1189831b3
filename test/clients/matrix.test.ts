// What every client makes of our reply is what it makes of the reference for the same content, cell by cell: clients and
// the ways in which they ask, by what the model says. The matrix is printed at the end.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { collected, eventsOf, expectWellFormed } from "../fixtures/events.ts";
import { goldenMessages } from "../fixtures/messages-captures.ts";
import { expectWellFormedMessage, messagesEventsOf } from "../fixtures/messages-events.ts";
import { missing } from "../fixtures/optional.ts";
import { expectOrderedResponse } from "../fixtures/response-events.ts";
import { useStack } from "../fixtures/stack.ts";
import { absent, matrixRows } from "./matrix-clients.ts";
import { messageOf, references, type ScriptName, scriptNames } from "./matrix-references.ts";
import { nodeScripts, type ReferenceServer, startReferenceServer } from "./matrix-servers.ts";

const page = { title: "Bun", url: "https://example.com/bun", content: "Bun is" };

describe.skipIf(missing(`a client (${absent.join(", ")})`, absent.length === 0, "run npm ci in test/clients"))(
  "matrix",
  () => {
    const stack = useStack({ search: [page] });
    let referenceServer: ReferenceServer;
    const printed: string[] = [];

    beforeAll(async () => {
      referenceServer = startReferenceServer();
      for (const [name, script] of nodeScripts) await stack.node.define(name, script);
    });
    afterAll(() => {
      referenceServer[Symbol.dispose]();
      console.log([`${"".padEnd(48)}${scriptNames.map((name) => name.padEnd(16)).join("")}`, ...printed].join("\n"));
    });

    test.each(absent.length === 0 ? matrixRows().map((row) => [`${row.dialect}: ${row.name}`, row] as const) : [])(
      "%s",
      async (name, row) => {
        const { api_key: key } = await stack.gateway.account();
        const cells: Partial<Record<ScriptName, [ours: unknown, reference: unknown]>> = {};
        for (const script of scriptNames) {
          const reference = await settled(row.run({ url: referenceServer.url, key }, script));
          cells[script] = [await settled(row.run({ url: stack.gateway.url, key }, script)), reference];
        }
        const marks = Object.values(cells).map(([ours, reference]) =>
          Bun.deepEquals(ours, reference) ? "=" : "differs",
        );
        printed.push(`${name.padEnd(48)}${marks.map((mark) => mark.padEnd(16)).join("")}`);
        for (const [script, [ours, reference]] of Object.entries(cells)) {
          expect([script, reference]).toEqual([script, expect.not.objectContaining({ failed: expect.anything() })]);
          expect([script, ours]).toEqual([script, reference]);
        }
      },
    );
  },
);

describe("the references", () => {
  test.each(scriptNames)("of %s are in order, and the reply says what the stream says", (script) => {
    const { chat, messages, responses } = references;
    const chunks = eventsOf(chat[script].stream);
    expectWellFormed(chunks, { usageApart: true });
    const { content, calls, annotations, finishReason } = collected(chunks);
    const [{ message, finish_reason }] = JSON.parse(chat[script].reply).choices;
    expect([finishReason, content, annotations]).toEqual([
      finish_reason,
      message.content ?? "",
      message.annotations ?? [],
    ]);
    expect(calls.map((call) => call.arguments)).toEqual(
      (message.tool_calls ?? []).map((call: { function: { arguments: string } }) => call.function.arguments),
    );
    expectWellFormedMessage(messagesEventsOf(messages[script].stream));
    expect(expectOrderedResponse(responses[script].stream)).toEqual(JSON.parse(responses[script].reply));
  });

  test("a reply that is put together from its stream is the recorded one", () => {
    expect(messageOf(messagesEventsOf(goldenMessages.messages_text))).toEqual(goldenMessages.messages_text__nonstream);
  });
});

/** What the client made of the reply, or its error; without what two right replies may differ in. */
async function settled(run: Promise<unknown>): Promise<unknown> {
  try {
    return normalised(await run);
  } catch (error) {
    return { raised: String(error) };
  }
}

const times = new Set(["created", "created_at", "completed_at", "timestamp"]);
const opaque = new Set([
  "encrypted_content",
  "encrypted_index",
  "encryptedContent",
  "encryptedIndex",
  "reasoningEncryptedContent",
  "signature",
]);
/** The convenience member that the references lack, and what echoes the request. */
const left = new Set(["output_text", "tools"]);
/** Ids of replies, items and calls, and those that the AI SDK makes itself. */
const idPattern = /^(?:(?:chatcmpl|msg|resp|rs|fc|ws|call|toolu|srvtoolu)[-_]\w+|[A-Za-z0-9]{16})$/;
const idNames = new Set(["id", "call_id", "tool_use_id", "toolCallId", "itemId", "callId"]);
/** The AI SDK 7 shows the usage of message_start, which is an estimate before the node has counted. */
const isEstimate = (value: unknown): boolean => (value as { kind?: string } | null)?.kind === "anthropic.message_start";

/** Plain JSON in which ids are numbered as they appear, times and opaque strings are named. */
function normalised(value: unknown): unknown {
  const ids: string[] = [];
  return visit(JSON.parse(JSON.stringify(value ?? null)), "");

  function visit(inner: unknown, name: string): unknown {
    if (times.has(name) && typeof inner === "number") return "time";
    if (opaque.has(name) && typeof inner === "string") return "opaque";
    if (idNames.has(name) && typeof inner === "string" && idPattern.test(inner)) {
      if (!ids.includes(inner)) ids.push(inner);
      return `id ${ids.indexOf(inner)}`;
    }
    if (Array.isArray(inner)) return inner.filter((each) => !isEstimate(each)).map((each) => visit(each, ""));
    if (typeof inner !== "object" || inner === null) return inner;
    const members = Object.entries(inner).filter(([member]) => !left.has(member));
    members.sort(([a], [b]) => (a < b ? -1 : 1));
    return Object.fromEntries(members.map(([member, each]) => [member, visit(each, member)]));
  }
}
