// The reference of each of the matrix's scripts in each dialect: a stream and a reply that every client was seen to
// read correctly. What was not recorded as a whole is cut out of what was: one call of two, the text without its
// thoughts. Chat-completions alone has no recorded search; there the annotations are put where its clients read them.
import { goldenChat } from "../fixtures/captures.ts";
import { goldenMessages } from "../fixtures/messages-captures.ts";
import { type MessagesEvent, messagesEventsOf, replayedBlocks } from "../fixtures/messages-events.ts";
import { responseEvents } from "../fixtures/response-events.ts";
import { goldenResponses } from "../fixtures/responses-captures.ts";

export const scriptNames = [
  "text",
  "reasoning-text",
  "one-tool",
  "two-tools",
  "length",
  "stop-sequence",
  "web-search",
] as const;
export type ScriptName = (typeof scriptNames)[number];
export type DialectName = "chat" | "messages" | "responses";

type Json = Record<string, any>;
/** The body of the streamed and of the other reply. */
export type Reference = Readonly<{ stream: string; reply: string }>;

/** Recordings name a first-party tier but have the usage of a hosted model. */
export const model = "open-05-3BIT-REAP";

/** What a model must write for the gateway to cite the first source of a search. */
export const citedText = "Hi there! [1]";
const mark = { start: citedText.indexOf("["), end: citedText.length };

const reference = (stream: string, reply: Json): Reference => ({
  stream: adjusted(stream),
  reply: adjusted(JSON.stringify(reply)),
});
/** With the count of responses that the official types promise since these were recorded. */
const adjusted = (recording: string): string =>
  recording
    .replaceAll('"core-3"', `"${model}"`)
    .replaceAll(/("input_tokens_details":\{"cached_tokens":\d+)\}/g, '$1,"cache_write_tokens":0}');

// -------------------------------------------------------------------------------------------------- chat-completions

const chatEvents = (stream: string, keeps: (event: string) => boolean): string =>
  stream
    .split("\n\n")
    .filter((event) => keeps(event))
    .join("\n\n");

function chatReply(reply: Json, message: Json, more: Json = {}): Json {
  const [choice] = reply["choices"];
  return { ...reply, choices: [{ ...choice, message: { ...choice.message, ...message }, ...more }] };
}

function chatReferences(): Record<ScriptName, Reference> {
  const thought = goldenChat.chat_text__nonstream;
  const calls = goldenChat.chat_tools__nonstream;
  const said = chatEvents(goldenChat.chat_text, (event) => !event.includes("reasoning_content"));
  const saidReply = chatReply(thought, { reasoning_content: undefined });
  const cited = {
    type: "url_citation",
    url_citation: { start_index: mark.start, end_index: mark.end, url: "https://example.com/bun", title: "Bun" },
  };
  const citing = said
    .replace('"there!"', '"there! [1]"')
    .replace(/^(data: .*)\{\}(,"finish_reason":)"stop"(.*)$/m, (whole, before, between, after) =>
      [`${before}${JSON.stringify({ annotations: [cited] })}${between}null${after}`, whole].join("\n\n"),
    );
  const oneCall = chatEvents(goldenChat.chat_tools, (event) => !event.includes('"tool_calls":[{"index":1'));
  return {
    text: reference(said, saidReply),
    "reasoning-text": reference(goldenChat.chat_text, thought),
    "one-tool": reference(oneCall, chatReply(calls, { tool_calls: [calls.choices[0]!.message.tool_calls[0]] })),
    "two-tools": reference(goldenChat.chat_tools, calls),
    length: reference(goldenChat.chat_length, chatReply(saidReply, {}, { finish_reason: "length" })),
    "stop-sequence": reference(said, saidReply), // this dialect does not tell it from an end
    "web-search": reference(citing, chatReply(saidReply, { content: citedText, annotations: [cited] })),
  };
}

// ---------------------------------------------------------------------------------------------------------- messages

const messagesStream = (events: readonly Json[]): string =>
  events.map((event) => `event: ${event["type"]}\ndata: ${JSON.stringify(event)}\n\n`).join("");

/** The stream without one of its blocks. */
function withoutBlock(stream: string, index: number): string {
  const events = messagesEventsOf(stream).filter((event) => event["index"] !== index);
  return messagesStream(
    events.map((event) => (event["index"] > index ? { ...event, index: event["index"] - 1 } : event)),
  );
}

/** The message that a stream tells. */
export function messageOf(events: readonly MessagesEvent[]): Json {
  const [start] = events.filter(({ type }) => type === "message_start");
  const [delta] = events.filter(({ type }) => type === "message_delta");
  const usage = { ...start!["message"].usage, ...delta!["usage"] };
  return { ...start!["message"], ...delta!["delta"], content: replayedBlocks(events), usage };
}

function messagesReferences(): Record<ScriptName, Reference> {
  const both = (stream: string): Reference => reference(stream, messageOf(messagesEventsOf(stream)));
  return {
    text: both(withoutBlock(goldenMessages.messages_text, 0)),
    "reasoning-text": both(goldenMessages.messages_text),
    "one-tool": both(withoutBlock(goldenMessages.messages_tools, 3)),
    "two-tools": both(goldenMessages.messages_tools),
    length: both(goldenMessages.messages_max_tokens),
    "stop-sequence": both(goldenMessages.messages_stop_sequence),
    "web-search": both(goldenMessages.messages_websearch.replaceAll("Hi there!", citedText)),
  };
}

// --------------------------------------------------------------------------------------------------------- responses

const responsesStream = (events: readonly Json[]): string =>
  `${events.map((event) => `event: ${event["type"]}\ndata: ${JSON.stringify(event)}\n\n`).join("")}data: [DONE]\n\n`;

const withoutOutput = (response: Json, index: number): Json => ({
  ...response,
  output: response["output"].filter((_: unknown, at: number) => at !== index),
});

/** The stream without one of its items. */
function withoutItem(stream: string, index: number): string {
  const events = (responseEvents(stream).events as Json[])
    .filter((event) => event["output_index"] !== index)
    .map((event, sequence_number) => {
      const moved = event["output_index"] > index ? { output_index: event["output_index"] - 1 } : {};
      const response = event["response"] === undefined ? {} : { response: withoutOutput(event["response"], index) };
      return { ...event, ...moved, ...response, sequence_number };
    });
  return responsesStream(events);
}

function responsesReferences(): Record<ScriptName, Reference> {
  const recorded = (name: string): Reference =>
    reference(goldenResponses[name] as string, goldenResponses[`${name}__nonstream`] as Json);
  const without = (name: string, index: number): Reference =>
    reference(
      withoutItem(goldenResponses[name] as string, index),
      withoutOutput(goldenResponses[`${name}__nonstream`] as Json, index),
    );
  const marked = (body: string): string =>
    body
      .replaceAll("Hi there!", citedText)
      .replace('"delta":"ere!"', '"delta":"ere! [1]"')
      .replaceAll('"start_index":0,"end_index":2', `"start_index":${mark.start},"end_index":${mark.end}`);
  const said = without("responses_text", 0);
  const searched = recorded("responses_websearch");
  return {
    text: said,
    "reasoning-text": recorded("responses_text"),
    "one-tool": without("responses_tools", 2),
    "two-tools": recorded("responses_tools"),
    length: recorded("responses_incomplete"),
    "stop-sequence": said, // this dialect does not tell it from an end
    "web-search": { stream: marked(searched.stream), reply: marked(searched.reply) },
  };
}

export const references: Readonly<Record<DialectName, Readonly<Record<ScriptName, Reference>>>> = {
  chat: chatReferences(),
  messages: messagesReferences(),
  responses: responsesReferences(),
};
