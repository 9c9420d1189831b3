// The two sides of the matrix: the gateway, whose node says what the references say, and a server that does nothing but
// hand out the references.
import type { Endpoint } from "../fixtures/endpoints.ts";
import {
  callArguments,
  callStart,
  finish,
  reasoning,
  type Script,
  stream,
  type Step,
  text,
} from "../fixtures/scripts.ts";
import { citedText, type DialectName, references, type ScriptName, scriptNames } from "./matrix-references.ts";

const dialectOf: Readonly<Record<Endpoint, DialectName>> = {
  "/v1/chat/completions": "chat",
  "/v1/messages": "messages",
  "/v1/responses": "responses",
};

// -------------------------------------------------------------------------------------------------- the node's scripts

const usage = (output: number, input = 120, cached = 20, thoughts = 5) => ({
  prompt_tokens: input,
  completion_tokens: output,
  total_tokens: input + output,
  prompt_tokens_details: { cached_tokens: cached },
  completion_tokens_details: { reasoning_tokens: thoughts },
});
const said = text("Hi ", "there!");
const calls = [
  [callStart(0, "call_1", "bash"), ...callArguments(0, '{"comma', 'nd":"echo a"}')],
  [callStart(1, "call_2", "bash"), ...callArguments(1, '{"command":"ec', 'ho b"}')],
] as const;
/** The recordings of the messages dialect have a text before their calls, and other counts. */
const beforeCalls = (dialect: DialectName): Step[] => [
  ...reasoning("Two calls."),
  ...(dialect === "messages" ? text("Running.") : []),
];
const outputOf = (dialect: DialectName, script: ScriptName): number => {
  if (dialect !== "messages") return 20;
  if (script === "one-tool" || script === "two-tools") return 30;
  return script === "length" || script === "stop-sequence" ? 8 : 20;
};

/** What a node says for the gateway to give the reference; a second round answers a tool's result. */
function scriptOf(dialect: DialectName, script: ScriptName): Script {
  const told = usage(outputOf(dialect, script));
  const answer = stream(said, finish("stop", usage(20)));
  const rounds = (first: (Step | Step[])[], next = answer): Script => ({
    advance: "rounds",
    replies: [stream(...first), next],
  });
  switch (script) {
    case "text":
      return rounds([said, finish("stop", told)]);
    case "reasoning-text":
      return rounds([reasoning("Let me ", "think."), said, finish("stop", told)]);
    case "one-tool":
      return rounds([beforeCalls(dialect), [...calls[0]], finish("tool_calls", told)]);
    case "two-tools":
      return rounds([beforeCalls(dialect), [...calls[0]], [...calls[1]], finish("tool_calls", told)]);
    case "length":
      return rounds([said, finish("length", told)]);
    case "stop-sequence": // as vLLM says it
      return rounds([
        said,
        { raw: 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop","stop_reason":"END"}]}\n\n' },
        { usage: told },
        { done: true },
      ]);
    case "web-search":
      return rounds(
        [
          callStart(0, "call_1", "web_search"),
          callArguments(0, '{"query":', '"bun runtime"}'),
          finish("tool_calls", usage(5, 60, 10, 0)),
        ],
        stream(text("Hi th", citedText.slice(5)), finish("stop", usage(15, 60, 10, 5))),
      );
    default:
      return script satisfies never;
  }
}

/** The prompt by which both sides know what to say. */
export const promptOf = (dialect: DialectName, script: ScriptName): string => `say it [[${nameOf(dialect, script)}]]`;
const nameOf = (dialect: DialectName, script: ScriptName): string => `matrix-${dialect}-${script}`;

/** Every script of the matrix, by the name under which the node must know it. */
export const nodeScripts: readonly (readonly [string, Script])[] = (["chat", "messages", "responses"] as const).flatMap(
  (dialect) => scriptNames.map((script) => [nameOf(dialect, script), scriptOf(dialect, script)] as const),
);

// ---------------------------------------------------------------------------------------------- the references' server

export type ReferenceServer = Disposable & Readonly<{ url: string }>;

export function startReferenceServer(): ReferenceServer {
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    development: false,
    async fetch(request) {
      const dialect = dialectOf[new URL(request.url).pathname as Endpoint];
      const body = await request.text();
      const script = scriptNames.find((name) => body.includes(`[[${nameOf(dialect, name)}]]`));
      if (script === undefined) return new Response("no script is named", { status: 404 });
      const answersTool = /"role":"tool"|"type":"(?:function_call_output|tool_result)"/.test(body);
      const { stream: events, reply } = references[dialect][answersTool ? "text" : script];
      return (JSON.parse(body) as { stream?: boolean }).stream === true
        ? new Response(events, { headers: { "content-type": "text/event-stream; charset=utf-8" } })
        : new Response(reply, { headers: { "content-type": "application/json" } });
    },
  });
  return { url: server.url.origin, [Symbol.dispose]: () => void server.stop(true) };
}
