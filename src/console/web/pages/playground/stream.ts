// Sends a request and reads its stream into the answer, event by event.
import { consoleHeader } from "../../../api/console-header.ts";
import { now } from "../../clock.ts";
import { inWords, messageOf } from "../../request.ts";
import { t } from "../../texts.ts";
import type { Answer, DialectName, Settings, Turn } from "./conversation.ts";
import { chatCompletions } from "./chat-completions.ts";
import { fail, type Json, type PlaygroundDialect, record } from "./dialect.ts";
import { messages } from "./messages.ts";
import { responses } from "./responses.ts";

export const dialects: Readonly<Record<DialectName, PlaygroundDialect>> = {
  "chat-completions": chatCompletions,
  messages,
  responses,
};

/** Streams an answer. Resolves when it ends in any way; calls `onChange` when there is more to show. */
export async function receive(
  answer: Answer,
  settings: Settings,
  turns: readonly Turn[],
  cancelSignal: AbortSignal,
  onChange: () => void,
): Promise<void> {
  const dialect = dialects[settings.dialect];
  // A page that goes loses its connections first, which is no failure.
  let isLeaving = false;
  const onLeave = (): void => void (isLeaving = true);
  addEventListener("beforeunload", onLeave);
  try {
    await stream(dialect, dialect.body(settings, turns), answer, cancelSignal, onChange);
    finish(answer);
  } catch (error) {
    if (cancelSignal.aborted) answer.state = "stopped";
    else if (isLeaving) Object.assign(answer, { state: "stopped", finish: "cut" } satisfies Partial<Answer>);
    else fail(answer, { message: whyBroken(error, answer) });
  } finally {
    removeEventListener("beforeunload", onLeave);
    if (answer.error !== null) answer.error = await inWords(answer.error);
    answer.totalMs = now() - answer.startedAt;
  }
}

/** Replaces the browsers' own messages, such as "Failed to fetch", which help no one. */
function whyBroken(error: unknown, { requestId }: Answer): string {
  if (!(error instanceof TypeError)) return `${t("play.unreadable")} ${messageOf(error)}`;
  if (requestId === null) return t("play.unreachable");
  return t("play.lost");
}

function finish(answer: Answer): void {
  if (answer.state !== "streaming") return;
  if (answer.complete) answer.state = "done";
  else fail(answer, { message: t("play.ended_early") });
}

async function stream(
  dialect: PlaygroundDialect,
  body: object,
  answer: Answer,
  cancelSignal: AbortSignal,
  onChange: () => void,
): Promise<void> {
  const response = await fetch(dialect.endpoint, {
    method: "POST",
    headers: { "content-type": "application/json", [consoleHeader]: "1", "anthropic-version": "2023-06-01" },
    body: JSON.stringify(body),
    signal: cancelSignal,
  });
  answer.requestId = response.headers.get("x-request-id");
  if (!response.ok || response.body === null) {
    const reply = record((await response.json().catch(() => null)) as unknown);
    const fallback = { message: t("play.status", { status: response.status }) };
    return fail(answer, { ...fallback, ...record(reply["error"]) });
  }
  const read = dialect.reader(answer);
  const show = nowAndThen(onChange);
  const waits = (place: string): void => {
    answer.place = place;
    show();
  };
  for await (const data of dataOf(response.body, waits)) {
    if (data === "[DONE]") answer.complete = true;
    else read(JSON.parse(data) as Json);
    if (answer.firstTokenMs === null && (answer.text !== "" || answer.reasoning !== "" || answer.calls.length > 0)) {
      answer.firstTokenMs = now() - answer.startedAt;
    }
    show();
  }
}

const placeComment = ": number ";

/** The `data:` of each event. Of the comments that keep the connection alive, some say the request's place in line. */
async function* dataOf(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  waits: (place: string) => void,
): AsyncGenerator<string> {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    rest += value;
    if (!value.includes("\n")) continue; // one event may be a megabyte, in many parts
    const lines = rest.split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line.startsWith("data:")) yield line.slice("data:".length).trim();
      else if (line.startsWith(placeComment)) waits(t("play.place", { place: line.slice(placeComment.length) }));
    }
  }
}

/** Draws many events together, more the longer an answer takes to draw, so that drawing takes a third of the time. */
function nowAndThen(draw: () => void): () => void {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      const beganMs = now();
      draw();
      setTimeout(() => {
        setTimeout(() => (waiting = false), 2 * (now() - beganMs));
      });
    });
  };
}
