// The chat-completions dialect of the playground.
import {
  type Answer,
  isAudio,
  isImage,
  type Picture,
  type Settings,
  type Turn,
  type UserTurn,
} from "./conversation.ts";
import {
  addSource,
  compactBody,
  dataUrl,
  editedOf,
  fail,
  list,
  type PlaygroundDialect,
  record,
  text,
  type WireEvent,
  whole,
} from "./dialect.ts";

export const chatCompletions: PlaygroundDialect = {
  endpoint: "/v1/chat/completions",
  body,
  reader: (answer) => (event) => read(event, answer),
};

function body(settings: Settings, turns: readonly Turn[]): Record<string, unknown> {
  const { tools, schema, stop } = editedOf(settings);
  return compactBody({
    model: settings.model,
    messages: [
      ...(settings.system === "" ? [] : [{ role: "system", content: settings.system }]),
      ...turns.flatMap(messageOf),
    ],
    max_tokens: settings.outputTokensMax ?? undefined,
    temperature: settings.temperature ?? undefined,
    top_p: settings.topP ?? undefined,
    reasoning_effort: settings.effort || undefined,
    stop: stop.length > 0 ? stop : undefined,
    tools: tools.length > 0 ? tools.map((tool) => ({ type: "function", function: tool })) : undefined,
    response_format:
      schema === null ? undefined : { type: "json_schema", json_schema: { name: "answer", schema, strict: true } },
    web_search: settings.webSearch || undefined,
    stream: true,
    stream_options: { include_usage: true },
  });
}

function messageOf(turn: Turn): readonly object[] {
  switch (turn.role) {
    case "user":
      return [{ role: "user", content: contentOf(turn) }];
    case "tool":
      return [{ role: "tool", tool_call_id: turn.callId, content: turn.output }];
    case "assistant": {
      const calls = turn.calls.map(({ id, name, arguments: json }) => ({
        id,
        type: "function",
        function: { name, arguments: json },
      }));
      if (turn.text === "" && calls.length === 0) return [];
      return [
        compactBody({ role: "assistant", content: turn.text || null, tool_calls: calls.length ? calls : undefined }),
      ];
    }
    default:
      return turn satisfies never;
  }
}

const formatOf = ({ type }: Picture): string =>
  type === "audio/mpeg" ? "mp3" : type.replace(/^audio\/(?:x-)?/, "").replaceAll(/[^a-z0-9]/g, "");

function contentOf({ text: words, pictures }: UserTurn): string | readonly object[] {
  if (pictures.length === 0) return words;
  return [
    ...pictures.map((picture) => {
      const url = dataUrl(picture);
      if (isAudio(picture))
        return { type: "input_audio", input_audio: { data: picture.base64, format: formatOf(picture) } };
      return isImage(picture)
        ? { type: "image_url", image_url: { url } }
        : { type: "file", file: { filename: picture.name, file_data: url } };
    }),
    ...(words === "" ? [] : [{ type: "text", text: words }]),
  ];
}

function read(event: WireEvent, answer: Answer): void {
  if (event["error"] !== undefined) return fail(answer, record(event["error"]));
  const usage = record(event["usage"]);
  if (usage["total_tokens"] !== undefined) {
    answer.usage = {
      input: whole(usage["prompt_tokens"]),
      output: whole(usage["completion_tokens"]),
      cached: whole(record(usage["prompt_tokens_details"])["cached_tokens"]),
      reasoning: whole(record(usage["completion_tokens_details"])["reasoning_tokens"]),
    };
  }
  const choice = list(event["choices"])[0];
  if (choice === undefined) return;
  const delta = record(choice["delta"]);
  answer.reasoning += text(delta["reasoning_content"]);
  answer.text += text(delta["content"]) + text(delta["refusal"]);
  for (const part of list(delta["tool_calls"])) {
    const named = record(part["function"]);
    const call = (answer.calls[whole(part["index"])] ??= { id: "", name: "", arguments: "" });
    call.id ||= text(part["id"]);
    call.name ||= text(named["name"]);
    call.arguments += text(named["arguments"]);
  }
  for (const annotation of list(delta["annotations"])) addSource(answer, record(annotation["url_citation"]));
  if (choice["finish_reason"] != null) answer.finish = text(choice["finish_reason"]);
}
