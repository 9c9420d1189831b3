// The Worker that reads large bodies, one after the other. It keeps nothing between two calls and gives each body back.
// It is ended by a message, never terminated.
import { setPriority } from "node:os";
import { systemClock } from "../core/clock.ts";
import { answerCalls, endWorker, Moved } from "../core/workers.ts";
import { Dialects } from "../dialects/registry.ts";
import { prepare, type Prepared, type PrepareOrder } from "./prepare.ts";

/** `body` comes back from the Worker; nobody has it after a refusal. */
export type Read = Readonly<{ body: Uint8Array; prepared: Prepared }>;

/** First how responses are read, then one body at a time: a `Read` is the answer. */
export type BodyCall =
  | Readonly<{ order: "open"; sealingKey: Uint8Array; storesResponses: boolean }>
  | (PrepareOrder & Readonly<{ order: "prepare" }>)
  | Readonly<{ order: "close" }>;

declare const self: Worker;

/** Linux gives the main thread 9 times the share of this one where both want the same core. */
const niceness = 10;
/** Garbage of a body is collected once there is nothing else to read. */
const restMs = 1_000;

let dialects: Dialects;
let rest: Timer | null = null;

answerCalls<BodyCall>(self, (call) => {
  if (rest !== null) clearTimeout(rest);
  switch (call.order) {
    case "open": {
      const { sealingKey, storesResponses } = call;
      dialects = new Dialects({ sealingKey, storesResponses, clock: systemClock });
      return undefined;
    }
    case "prepare": {
      rest = setTimeout(() => Bun.gc(true), restMs);
      const { body } = call;
      const prepared = prepare(call, dialects);
      return new Moved({ body, prepared } satisfies Read, [body.buffer as ArrayBuffer, ...buffersOf(prepared)]);
    }
    case "close":
      return endWorker(self);
  }
});

// On Linux a priority is a thread's own; elsewhere it would be the whole process's.
if (process.platform === "linux") setPriority(0, niceness);

/** What is moved, not copied. */
function buffersOf(prepared: Prepared): ArrayBuffer[] {
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
