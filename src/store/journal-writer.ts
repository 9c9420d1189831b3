// The Worker that owns the writing connection. It is stopped by message, never terminated.
import { systemClock } from "../clock.ts";
import { journalIdleCheckpointMs } from "../limits.ts";
import type { Ms } from "../types.ts";
import type { Batch } from "./batch.ts";
import { codeOf, messageOf } from "./data-folder.ts";
import { openForWriting } from "./open.ts";
import { Persistence, type Report } from "./persistence.ts";
import { Writer } from "./writer.ts";

/** To the Worker. `json` is a Batch. */
export type Order =
  | Readonly<{ order: "open"; file: string; epoch: number }>
  | Readonly<{ order: "commit"; json: string; patienceMs: Ms }>
  | Readonly<{ order: "close" }>;

/** From the Worker. `fatal` is followed by nothing. */
export type Answer = Report | "opened" | "closed" | Readonly<{ fatal: string; code: string }>;

declare const self: Worker;

let writer: Writer;
let persistence: Persistence;
let idle: Timer | null = null;
let closed = false;

// Installed before anything is awaited: a message that comes earlier would be lost.
self.onmessage = ({ data }: MessageEvent<Order>) => {
  obey(data).catch((thrown) => {
    answer({ fatal: messageOf(thrown), code: codeOf(thrown) });
    end();
  });
};

async function obey(order: Order): Promise<void> {
  if (idle !== null) clearTimeout(idle);
  idle = null;
  switch (order.order) {
    case "open":
      writer = new Writer(openForWriting(order.file), order.epoch);
      persistence = new Persistence(writer, systemClock, Bun.sleep, answer);
      return answer("opened");
    case "commit":
      await persistence.commit(JSON.parse(order.json) as Batch, order.patienceMs);
      if (closed) return; // the looks at a full disk ended with it
      // A checkpoint while requests end would make them wait for it.
      idle = setTimeout(() => writer.checkpoint(), journalIdleCheckpointMs);
      return;
    case "close":
      closed = true;
      persistence.close();
      writer.close();
      answer("closed");
      return end();
  }
}

/** A Worker that listens to nothing ends. (Bun 1.4.5 has no self.close.) */
function end(): void {
  self.onmessage = null;
}

function answer(message: Answer): void {
  self.postMessage(message);
}
