// The Worker that owns the writing connection. It is stopped by message, never terminated.
import { systemClock } from "../../core/clock.ts";
import type { Ms } from "../../core/types.ts";
import type { Batch } from "./batch.ts";
import { codeOf, messageOf } from "../folder/folder-faults.ts";
import { LedgerPlace } from "./ledger-place.ts";
import { openForWriting } from "../open.ts";
import { Persistence, type CommitReport } from "./persistence.ts";
import { Retention } from "./retention.ts";
import { Writer } from "./writer.ts";

/** Between two checks that the ledger's files are where they were. */
const ledgerPlaceIntervalMs = 1_000;
/** After this long without a commit, the log is moved into the database. */
const journalIdleCheckpointMs = 1_000;

export type WriterOrder =
  /** `keepDays`: lines of the journal that are older are folded into sums; null: none are. */
  | Readonly<{ order: "open"; file: string; epoch: number; keepDays: number | null }>
  | Readonly<{ order: "commit"; json: string; patienceMs: Ms }>
  | Readonly<{ order: "retain"; keepDays: number | null }>
  | Readonly<{ order: "close" }>;

/** From the Worker. `fatal` is followed by nothing. */
export type WriterAnswer = CommitReport | "opened" | "closed" | Readonly<{ fatal: string; code: string }>;

declare const self: Worker;

let writer: Writer;
let persistence: Persistence;
let idle: Timer | null = null;
let closed = false;
let committing = false;
let retention: Retention | null = null;
let looks: Timer | null = null;

// Installed before anything is awaited: a message that comes earlier would be lost.
self.onmessage = ({ data }: MessageEvent<WriterOrder>) => {
  obey(data).catch(fatal);
};

function fatal(thrown: unknown): void {
  if (looks !== null) clearInterval(looks);
  retention?.close();
  answer({ fatal: messageOf(thrown), code: codeOf(thrown) });
  end();
}

/** From here on, lines that are older than this many days are folded; null: none are. */
function retain(keepDays: number | null): void {
  retention?.close();
  const busy = () => committing || persistence.stalled;
  retention = keepDays === null ? null : new Retention({ writer, clock: systemClock, keepDays, busy, onFatal: fatal });
}

async function obey(order: WriterOrder): Promise<void> {
  if (order.order === "retain") return retain(order.keepDays);
  if (idle !== null) clearTimeout(idle);
  idle = null;
  switch (order.order) {
    case "open":
      writer = openWriter(order.file, order.epoch);
      persistence = new Persistence(writer, systemClock, Bun.sleep, answer);
      retain(order.keepDays);
      looks = setInterval(look, ledgerPlaceIntervalMs);
      return answer("opened");
    case "commit":
      committing = true;
      await persistence.commit(JSON.parse(order.json) as Batch, order.patienceMs);
      committing = false;
      if (closed) return; // the looks at a full disk ended with it
      // One that was given up goes on looking at the disk, and another may have ended meanwhile.
      if (idle !== null) clearTimeout(idle);
      // A checkpoint while requests end would make them wait for it.
      idle = setTimeout(() => writer.checkpoint(), journalIdleCheckpointMs);
      return;
    case "close":
      closed = true;
      if (looks !== null) clearInterval(looks);
      persistence.close();
      retention?.close();
      writer.close();
      answer("closed");
      return end();
  }
}

function openWriter(file: string, epoch: number): Writer {
  const database = openForWriting(file);
  database.query("SELECT epoch FROM instance").get(); // makes the files beside it
  return new Writer(database, epoch, new LedgerPlace(file));
}

function look(): void {
  if (committing) return; // it looks by itself
  try {
    persistence.look();
  } catch (thrown) {
    fatal(thrown);
  }
}

/** A Worker that listens to nothing ends. (Bun 1.4.5 has no self.close.) */
function end(): void {
  self.onmessage = null;
}

function answer(message: WriterAnswer): void {
  self.postMessage(message);
}
