// The process in which clients' schemas are compiled and run. Whatever a client sent may take forever; its memory and
// crashes stay in this process. A check that takes long is stopped from inside, so that the next need not wait for
// another process; if that fails (a pattern that only the engine itself can run), the whole process is ended.
import type { Ms } from "../../core/types.ts";
import { AnswerValidator, TooSlow, type Verdict } from "./answer-validator.ts";
import { usedSince, withinProcessorTime } from "./processor-limit.ts";
import { endWhenStuck, endWithGateway, standBehindGateway } from "../worker-process.ts";

/** To the process. The schema is JSON text, null for any JSON; without a text the schema itself is checked. */
export type CheckOrder = Readonly<{ schema: string | null; text: string | null }>;
/** A check is begun again with more time where it took longer than `wallMs` and has not used `processorMs` yet. */
export type CheckLimits = Readonly<{ processorMs: Ms; wallMs: Ms }>;
export type LimitedOrder = CheckOrder & CheckLimits;
/** `slow`: the check takes longer than it may, or needs what this process does not run. */
export type TimedVerdict = (Verdict | Readonly<{ verdict: "slow" }>) & Readonly<{ usedMs: number }>;
/** From the process: once that it can begin, then one verdict for each order, in their order. */
export type CheckAnswer = "ready" | TimedVerdict;

/** `quick`: no check keeps the next waiting; `thorough`: where those are made that need longer, behind the streams. */
export type CheckingPace = "quick" | "thorough";

/** Answers orders until the gateway ends or closes the channel. */
export function checkUntilDisconnected(pace: CheckingPace): Promise<void> {
  if (pace === "quick") endWithGateway();
  else standBehindGateway();
  const validator = new AnswerValidator({ runsAnyPattern: pace === "thorough" });
  const check = ({ schema, text }: CheckOrder) =>
    text === null ? validator.schema(schema ?? "{}") : validator.answer(schema, text);
  // what is made at the first use is no client's check
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
