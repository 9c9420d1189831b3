// The Worker that reads large bodies, one after the other. It keeps nothing between two calls and returns each body. A
// message ends it; it is never terminated.
import { setPriority } from "node:os";
import { systemClock } from "../core/clock.ts";
import { answerCalls, endWorker, Moved } from "../core/workers.ts";
import { Dialects } from "../dialects/registry.ts";
import { prepare, type Prepared, type PrepareOrder } from "./prepare.ts";

/** The Worker returns `body`; after a refusal it is lost. */
export type Read = Readonly<{ body: Uint8Array; prepared: Prepared }>;

/** The first call sets up the reading of responses; each further call is one body, answered with a `Read`. */
export type BodyCall =
  | Readonly<{ order: "open"; sealingKey: Uint8Array; storesResponses: boolean }>
  | (PrepareOrder & Readonly<{ order: "prepare" }>)
  | Readonly<{ order: "close" }>;

declare const self: Worker;

/** Linux gives the main thread 9 times this thread's share where both want the same core. */
const niceness = 10;
/** A body's garbage is collected once there is nothing else to read. */
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

// On Linux a priority applies to the thread; elsewhere it would apply to the whole process.
if (process.platform === "linux") setPriority(0, niceness);

/** What is transferred rather than copied. */
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
