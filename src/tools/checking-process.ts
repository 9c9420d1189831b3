// The process in which clients' schemas are compiled and their patterns run. A pattern may take longer than the universe
// exists and cannot be stopped from inside, so it runs where the system can: the gateway kills this process, whose
// memory and crashes are its own too. A Worker would share both, and ending one in the middle of its work has crashed
// the runtime.
import { dlopen, FFIType } from "bun:ffi";
import { setPriority } from "node:os";
import { AnswerValidator, type Verdict } from "./answer-validator.ts";

/** To the process. The schema is JSON text, null for any JSON; without a text the schema itself is checked. */
export type CheckOrder = Readonly<{ schema: string | null; text: string | null }>;
/** From the process: once that it can begin, then one verdict for each order, in their order. */
export type CheckAnswer = "ready" | Verdict;

/** Streams have the processor first where both want the same core. */
const niceness = 10;
const setParentDeathSignal = 1; // prctl(2), PR_SET_PDEATHSIG
const killSignal = 9;

/** Answers orders until the gateway ends or closes the channel. */
export function checkUntilDisconnected(): Promise<void> {
  setPriority(0, niceness);
  dieWithParent();
  const validator = new AnswerValidator();
  const disconnected = Promise.withResolvers<void>();
  process.on("disconnect", () => disconnected.resolve());
  process.on("message", ({ schema, text }: CheckOrder) => {
    answer(text === null ? validator.schema(schema ?? "{}") : validator.answer(schema, text));
  });
  answer("ready");
  return disconnected.promise;
}

function answer(message: CheckAnswer): void {
  process.send!(message);
}

/** A gateway that is killed outright cannot end a check that never ends. Linux alone can be asked to. */
function dieWithParent(): void {
  if (process.platform !== "linux") return;
  for (const library of ["libc.so.6", `libc.musl-${process.arch === "arm64" ? "aarch64" : "x86_64"}.so.1`]) {
    try {
      const { symbols } = dlopen(library, { prctl: { args: [FFIType.i32, FFIType.u64], returns: FFIType.i32 } });
      symbols.prctl(setParentDeathSignal, killSignal);
      return;
    } catch {
      // not this system's C library; the next name is tried
    }
  }
}

if (import.meta.main) await checkUntilDisconnected();
