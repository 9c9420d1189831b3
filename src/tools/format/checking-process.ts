// The process that compiles and runs clients' schemas, which may take forever. A slow check is stopped from inside; if
// that fails (a pattern that only the engine can run), the process is ended.
import type { Ms } from "../../core/types.ts";
import { AnswerValidator, TooSlow, type Verdict } from "./answer-validator.ts";
import { usedSince, withinProcessorTime } from "./processor-limit.ts";
import { endWhenStuck, endWithGateway, standBehindGateway } from "../worker-process.ts";

/** To the process. The schema is JSON text, null for any JSON. Without a text, the schema itself is checked. */
export type CheckOrder = Readonly<{ schema: string | null; text: string | null }>;
/** A check that has taken longer than `wallMs` without using `processorMs` starts again with more time. */
export type CheckLimits = Readonly<{ processorMs: Ms; wallMs: Ms }>;
export type LimitedOrder = CheckOrder & CheckLimits;
/** `slow`: the check exceeds its time, or needs what this process does not run. */
export type TimedVerdict = (Verdict | Readonly<{ verdict: "slow" }>) & Readonly<{ usedMs: number }>;
/** From the process: first that it is ready, then one verdict for each order, in order. */
export type CheckAnswer = "ready" | TimedVerdict;

/** `quick`: no check delays the next; `thorough`: for checks that need longer, behind the streams. */
export type CheckingPace = "quick" | "thorough";

/** Answers orders until the gateway ends or closes the channel. */
export function checkUntilDisconnected(pace: CheckingPace): Promise<void> {
  if (pace === "quick") endWithGateway();
  else standBehindGateway();
  const validator = new AnswerValidator({ runsAnyPattern: pace === "thorough" });
  const check = ({ schema, text }: CheckOrder) =>
    text === null ? validator.schema(schema ?? "{}") : validator.answer(schema, text);
  // What is created at first use should not count as a client's check.
  check({ schema: '{"pattern":"a"}', text: '"a"' });
  const disconnected = Promise.withResolvers<void>();
  process.on("disconnect", () => disconnected.resolve());
  process.on("message", ({ schema, text, processorMs, wallMs }: LimitedOrder) => {
    const before = process.threadCpuUsage();
    const attempt = () => {
      endWhenStuck();
      return check({ schema, text });
    };
    const verdict = verdictWithin(() => withinProcessorTime(processorMs, wallMs, attempt));
    answer({ ...verdict, usedMs: usedSince(before) });
  });
  answer("ready");
  return disconnected.promise;
}

function verdictWithin(check: () => Verdict | null): Verdict | Readonly<{ verdict: "slow" }> {
  try {
    return check() ?? { verdict: "slow" };
  } catch (thrown) {
    if (thrown instanceof TooSlow) return { verdict: "slow" };
    throw thrown;
  }
}

function answer(message: CheckAnswer): void {
  process.send!(message);
}

if (import.meta.main) await checkUntilDisconnected(process.argv.includes("--quick") ? "quick" : "thorough");
