// The Worker that reads large bodies, one after the other. It keeps nothing between two orders and gives each body back; it
// is ended by message, never terminated.
import { setPriority } from "node:os";
import { systemClock } from "../core/clock.ts";
import { chatCompletions } from "../dialects/chat/chat-completions.ts";
import { messages } from "../dialects/messages/messages.ts";
import { compactionDialect, responsesDialect } from "../dialects/responses/responses.ts";
import { type Dialects, prepare, type Prepared, type PrepareOrder } from "./prepare.ts";

/** To the Worker: first how responses are read, then one body at a time. */
export type Order =
  | Readonly<{ order: "open"; sealingKey: Uint8Array; storesResponses: boolean }>
  | (PrepareOrder & Readonly<{ order: "prepare" }>)
  | Readonly<{ order: "close" }>;

/** From the Worker, for each body; `failed` is a fault of ours. */
export type Answer = Readonly<{ body: Uint8Array; prepared: Prepared | Readonly<{ kind: "failed"; reason: string }> }>;

declare const self: Worker;

/** Linux gives the main thread 9 times the share of this one where both want the same core. */
const niceness = 10;
/** What a body left behind is collected once nothing else is to be read. */
const restMs = 1_000;

let dialects: Dialects;
let rest: Timer | null = null;

self.onmessage = ({ data }: MessageEvent<Order>) => {
  if (rest !== null) clearTimeout(rest);
  switch (data.order) {
    case "open": {
      const { sealingKey, storesResponses } = data;
      const options = { sealingKey, storesResponses, clock: systemClock };
      dialects = {
        "chat-completions": chatCompletions,
        messages,
        responses: responsesDialect(options),
        compaction: compactionDialect(options),
      };
      return;
    }
    case "prepare":
      answer(data);
      rest = setTimeout(() => Bun.gc(true), restMs);
      return;
    case "close":
      self.onmessage = null; // A Worker that listens to nothing ends. (Bun 1.4.5 has no self.close.)
      return;
  }
};

// On Linux a priority is a thread's own; elsewhere it would be the whole process's.
if (process.platform === "linux") setPriority(0, niceness);

function answer(order: PrepareOrder): void {
  try {
    post(order.body, prepare(order, dialects));
  } catch (error) {
    // Also where the answer cannot be moved: nothing of it has gone then.
    post(order.body, { kind: "failed", reason: String(error) });
  }
}

function post(body: Uint8Array, prepared: Answer["prepared"]): void {
  self.postMessage({ body, prepared } satisfies Answer, [body.buffer as ArrayBuffer, ...buffersOf(prepared)]);
}

/** What is moved, not copied. */
function buffersOf(prepared: Answer["prepared"]): ArrayBuffer[] {
  switch (prepared.kind) {
    case "request":
    case "messages":
      return [prepared.turns.messages.buffer as ArrayBuffer];
    case "texts":
      return [prepared.rendering.texts.bytes.buffer as ArrayBuffer];
    default:
      return [];
  }
}
