// The process in which clients' schemas are compiled and their patterns run. A pattern may take longer than the universe
// exists and cannot be stopped from inside, so it runs where the system can: the gateway kills this process, whose
// memory and crashes are its own too. A Worker would share both, and ending one in the middle of its work has crashed
// the runtime.
import { AnswerValidator, type Verdict } from "./answer-validator.ts";
import { standBehindGateway } from "./worker-process.ts";

/** To the process. The schema is JSON text, null for any JSON; without a text the schema itself is checked. */
export type CheckOrder = Readonly<{ schema: string | null; text: string | null }>;
/** From the process: once that it can begin, then one verdict for each order, in their order. */
export type CheckAnswer = "ready" | Verdict;

/** Answers orders until the gateway ends or closes the channel. */
export function checkUntilDisconnected(): Promise<void> {
  standBehindGateway();
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

if (import.meta.main) await checkUntilDisconnected();
