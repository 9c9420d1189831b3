// The messages dialect of the playground.
import {
  type Answer,
  type Call,
  type Effort,
  isImage,
  type Picture,
  type Settings,
  textOfBase64,
  textType,
  type Turn,
} from "./conversation.ts";
import {
  addSource,
  compactBody,
  editedOf,
  endCall,
  fail,
  type Json,
  list,
  type PlaygroundDialect,
  record,
  text,
  textsOf,
  type WireEvent,
} from "./dialect.ts";

const thinkingBudgets: Readonly<Record<Exclude<Effort, "" | "off">, number>> = {
  low: 1_024,
  medium: 8_192,
  high: 24_576,
};

export const messages: PlaygroundDialect = { endpoint: "/v1/messages", body, reader };

function body(settings: Settings, turns: readonly Turn[]): Record<string, unknown> {
  const { tools, schema, stop } = editedOf(settings);
  const { effort } = settings;
  return compactBody({
    model: settings.model,
    max_tokens: settings.outputTokensMax ?? undefined,
    system: settings.system || undefined,
    messages: joined(turns.flatMap(messageOf)),
    temperature: settings.temperature ?? undefined,
    top_p: settings.topP ?? undefined,
    thinking:
      effort === ""
        ? undefined
        : effort === "off"
          ? { type: "disabled" }
          : { type: "enabled", budget_tokens: thinkingBudgets[effort] },
    stop_sequences: stop.length > 0 ? stop : undefined,
    tools:
      tools.length > 0
        ? tools.map(({ name, description, parameters }) => ({ name, description, input_schema: parameters }))
        : undefined,
    output_config: schema === null ? undefined : { format: { type: "json_schema", schema } },
    web_search: settings.webSearch || undefined,
    stream: true,
  });
}

type Message = Readonly<{ role: "user" | "assistant"; content: readonly object[] }>;

function messageOf(turn: Turn): readonly Message[] {
  switch (turn.role) {
    case "user": {
      return [{ role: "user", content: [...turn.pictures.map(blockOf), ...textBlock(turn.text)] }];
    }
    case "tool":
      return [{ role: "user", content: [{ type: "tool_result", tool_use_id: turn.callId, content: turn.output }] }];
    case "assistant": {
      const thinking = turn.thinking
        .filter(({ signature }) => signature !== "")
        .map((thought) => ({ type: "thinking", thinking: thought.text, signature: thought.signature }));
      const calls = turn.calls.map(({ id, name, arguments: json }) => ({
        type: "tool_use",
        id,
        name,
        input: inputOf(json),
      }));
      const content = [...thinking, ...textBlock(turn.text), ...calls];
      return content.length === 0 ? [] : [{ role: "assistant", content }];
    }
    default:
      return turn satisfies never;
  }
}

function blockOf(picture: Picture): object {
  const { name, type, base64 } = picture;
  const source = { type: "base64", media_type: type, data: base64 };
  if (isImage(picture)) return { type: "image", source };
  // The dialect has texts as they are.
  const text = { type: "text", media_type: type, data: textOfBase64(base64) };
  return { type: "document", source: type === textType ? text : source, title: name };
}

const textBlock = (words: string): readonly object[] => (words === "" ? [] : [{ type: "text", text: words }]);

/** Results of parallel calls belong in one message. */
const joined = (all: readonly Message[]): readonly Message[] =>
  all.reduce<Message[]>((done, message) => {
    const last = done.at(-1);
    if (last?.role !== message.role) return [...done, message];
    return [...done.slice(0, -1), { role: last.role, content: [...last.content, ...message.content] }];
  }, []);

function inputOf(json: string): unknown {
  try {
    return JSON.parse(json) as unknown;
  } catch {
    return {}; // a call that was cut off; the dialect cannot express half an object
  }
}

/** Blocks come one after another, and deltas only have an index, so the open block is remembered. */
function reader(answer: Answer): (event: WireEvent) => void {
  let open: Json = {};
  let input = "";
  return (event) => {
    switch (event["type"]) {
      case "error":
        return fail(answer, record(event["error"]));
      case "message_start":
        return countUsage(answer, record(record(event["message"])["usage"]));
      case "content_block_start":
        open = record(event["content_block"]);
        input = "";
        return begin(answer, open);
      case "content_block_delta":
        input += text(record(event["delta"])["partial_json"]);
        return extend(answer, open, record(event["delta"]));
      case "content_block_stop": {
        const query = text(record(inputOf(input))["query"]);
        if (open["type"] === "server_tool_use" && query !== "") answer.searches.push(query);
        return;
      }
      case "message_delta":
        answer.finish = text(record(event["delta"])["stop_reason"]) || answer.finish;
        return countUsage(answer, record(event["usage"]));
      case "message_stop":
        answer.complete = true;
        return;
      default:
        return;
    }
  };
}

function begin(answer: Answer, block: Json): void {
  switch (block["type"]) {
    case "thinking":
      answer.thinking.push({ text: "", signature: "" });
      return;
    case "tool_use":
      answer.calls.push({ id: text(block["id"]), name: text(block["name"]), arguments: "" });
      return;
    case "mcp_tool_use":
      answer.serverCalls.push({
        id: text(block["id"]),
        name: text(block["name"]),
        server: text(block["server_name"]),
        arguments: "",
        result: null,
        failed: false,
      });
      return;
    case "mcp_tool_result":
      return endCall(answer, text(block["tool_use_id"]), textsOf(block), block["is_error"] === true);
    case "web_search_tool_result":
      for (const result of list(block["content"])) addSource(answer, result);
      return;
    default:
      return;
  }
}

function extend(answer: Answer, block: Json, delta: Json): void {
  const thought = answer.thinking.at(-1);
  switch (delta["type"]) {
    case "text_delta":
      answer.text += text(delta["text"]);
      return;
    case "thinking_delta":
      answer.reasoning += text(delta["thinking"]);
      if (thought !== undefined) thought.text += text(delta["thinking"]);
      return;
    case "signature_delta":
      if (thought !== undefined) thought.signature += text(delta["signature"]);
      return;
    case "input_json_delta": {
      const call = callOf(answer, block);
      if (call !== undefined) call.arguments += text(delta["partial_json"]);
      return;
    }
    case "citations_delta":
      return addSource(answer, record(delta["citation"]));
    default:
      return;
  }
}

function callOf(answer: Answer, block: Json): Call | undefined {
  if (block["type"] === "tool_use") return answer.calls.at(-1);
  return block["type"] === "mcp_tool_use" ? answer.serverCalls.at(-1) : undefined;
}

function countUsage(answer: Answer, usage: Json): void {
  const before = answer.usage ?? { input: 0, output: 0, cached: 0, reasoning: 0 };
  const cached =
    typeof usage["cache_read_input_tokens"] === "number" ? usage["cache_read_input_tokens"] : before.cached;
  const fresh = typeof usage["input_tokens"] === "number" ? usage["input_tokens"] : before.input - before.cached;
  const output = typeof usage["output_tokens"] === "number" ? usage["output_tokens"] : before.output;
  answer.usage = { input: fresh + cached, cached, output, reasoning: before.reasoning };
}
