// The Worker that reads batches' lines, one call after the other. A message ends it.
import { setPriority } from "node:os";
import { answerCalls, endWorker, Moved } from "../core/workers.ts";
import { indexOf, runBody, writeInline, writeUnrun } from "./lines.ts";

export type LinesCall =
  | Readonly<{ order: "index"; path: string; endpoint: string }>
  | Readonly<{ order: "inline"; from: string; endpoint: string; path: string }>
  | (Readonly<{ order: "unrun"; path: string }> & Parameters<typeof writeUnrun>[1])
  /** A long line, as its id and the bytes of its body. */
  | Readonly<{ order: "split"; line: Uint8Array; endpoint: string }>
  | Readonly<{ order: "close" }>;

export type Split = Readonly<{ customId: string; body: Uint8Array }>;

declare const self: Worker;

const niceness = 10;

answerCalls<LinesCall>(self, async (call) => {
  switch (call.order) {
    case "index": {
      const index = await indexOf(call.path, call.endpoint);
      const { starts, sizes, numbers, order } = index;
      return new Moved(
        index,
        [starts, sizes, numbers, order].map(({ buffer }) => buffer as ArrayBuffer),
      );
    }
    case "inline":
      return writeInline(call.from, call.endpoint, call.path);
    case "unrun":
      return writeUnrun(call.path, call);
    case "split": {
      const { custom_id: customId, body } = JSON.parse(Buffer.from(call.line.buffer).toString()) as {
        custom_id: string;
        body: object;
      };
      const bytes = new TextEncoder().encode(JSON.stringify(runBody(call.endpoint, body)));
      return new Moved({ customId, body: bytes } satisfies Split, [bytes.buffer as ArrayBuffer]);
    }
    case "close":
      return endWorker(self);
  }
});

// On Linux a priority applies to the thread; elsewhere it would apply to the whole process.
if (process.platform === "linux") setPriority(0, niceness);
