// The responses dialect of the playground.
import { type Answer, isImage, type Settings, type Turn } from "./conversation.ts";
import {
  addSource,
  compactBody,
  dataUrl,
  editedOf,
  endCall,
  fail,
  type Json,
  type PlaygroundDialect,
  record,
  text,
  textsOf,
  type WireEvent,
  whole,
} from "./dialect.ts";

export const responses: PlaygroundDialect = {
  endpoint: "/v1/responses",
  body,
  reader: (answer) => (event) => read(event, answer),
};

function body(settings: Settings, turns: readonly Turn[]): Record<string, unknown> {
  const { tools, schema } = editedOf(settings);
  return compactBody({
    model: settings.model,
    instructions: settings.system || undefined,
    input: turns.flatMap(itemsOf),
    max_output_tokens: settings.outputTokensMax ?? undefined,
    temperature: settings.temperature ?? undefined,
    top_p: settings.topP ?? undefined,
    reasoning: settings.effort === "" ? undefined : { effort: settings.effort },
    tools: tools.length > 0 ? tools.map((tool) => ({ type: "function", ...tool })) : undefined,
    text: schema === null ? undefined : { format: { type: "json_schema", name: "answer", schema, strict: true } },
    web_search: settings.webSearch || undefined,
    stream: true,
  });
}

function itemsOf(turn: Turn): readonly object[] {
  switch (turn.role) {
    case "user": {
      const pictures = turn.pictures.map((picture) => ({
        ...(isImage(picture)
          ? { type: "input_image", image_url: dataUrl(picture) }
          : { type: "input_file", filename: picture.name, file_data: dataUrl(picture) }),
      }));
      const words = turn.text === "" ? [] : [{ type: "input_text", text: turn.text }];
      return [{ role: "user", content: pictures.length === 0 ? turn.text : [...pictures, ...words] }];
    }
    case "tool":
      return [{ type: "function_call_output", call_id: turn.callId, output: turn.output }];
    case "assistant":
      return [
        ...(turn.text === "" ? [] : [{ role: "assistant", content: turn.text }]),
        ...turn.calls.map(({ id, name, arguments: json }) => ({
          type: "function_call",
          call_id: id,
          name,
          arguments: json,
        })),
      ];
    default:
      return turn satisfies never;
  }
}

function read(event: WireEvent, answer: Answer): void {
  switch (event["type"]) {
    case "error":
      return fail(answer, event["error"] === undefined ? event : record(event["error"]));
    case "response.reasoning_summary_text.delta":
      answer.reasoning += text(event["delta"]);
      return;
    case "response.output_text.delta":
      answer.text += text(event["delta"]);
      return;
    case "response.output_text.annotation.added":
      return addSource(answer, record(event["annotation"]));
    case "response.output_item.added":
      return begin(answer, record(event["item"]));
    case "response.output_item.done": {
      const item = record(event["item"]);
      if (item["type"] === "mcp_call") {
        const failed = item["error"] != null;
        return endCall(
          answer,
          text(item["id"]),
          failed ? textsOf(record(item["error"])) : text(item["output"]),
          failed,
        );
      }
      const query = text(record(item["action"])["query"]);
      if (item["type"] === "web_search_call" && query !== "") answer.searches.push(query);
      return;
    }
    case "response.mcp_call_arguments.delta": {
      const call = answer.serverCalls.at(-1);
      if (call !== undefined) call.arguments += text(event["delta"]);
      return;
    }
    case "response.function_call_arguments.delta": {
      const call = answer.calls.at(-1);
      if (call !== undefined) call.arguments += text(event["delta"]);
      return;
    }
    case "response.failed":
      return fail(answer, record(record(event["response"])["error"]));
    case "response.completed":
    case "response.incomplete":
      return finish(answer, record(event["response"]));
    default:
      return;
  }
}

function begin(answer: Answer, item: Json): void {
  if (item["type"] === "mcp_call") {
    answer.serverCalls.push({
      id: text(item["id"]),
      name: text(item["name"]),
      server: text(item["server_label"]),
      arguments: text(item["arguments"]),
      result: null,
      failed: false,
    });
  }
  if (item["type"] !== "function_call") return;
  answer.calls.push({ id: text(item["call_id"]), name: text(item["name"]), arguments: text(item["arguments"]) });
}

function finish(answer: Answer, response: Json): void {
  const usage = record(response["usage"]);
  answer.complete = true;
  answer.finish = text(record(response["incomplete_details"])["reason"]) || text(response["status"]);
  answer.usage = {
    input: whole(usage["input_tokens"]),
    output: whole(usage["output_tokens"]),
    cached: whole(record(usage["input_tokens_details"])["cached_tokens"]),
    reasoning: whole(record(usage["output_tokens_details"])["reasoning_tokens"]),
  };
}
