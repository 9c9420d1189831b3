// Streams whose gaps between tokens are measured while something else is asked of the same proxy.
import { type AnswerShape, answerText } from "./answer.ts";
import { Connection } from "./connection.ts";
import { benchModel } from "./dialect.ts";
import { StreamCheck } from "./stream-client.ts";
import { RequestSource, type Subject } from "./subject.ts";

export type GapLoad = Readonly<{ streams: number; intervalMs: number; answer: AnswerShape }>;

export type GapRun = Readonly<{
  /** Milliseconds between two arrivals of text, of all streams, from when `beside` began. */
  gapsMs: readonly number[];
  /** How long the other work took. */
  besideMs: number;
  failures: readonly string[];
}>;

/** Opens the streams, starts `beside` when all of them run, and waits for both; `beside` adds its own failures. */
export async function runStreamsBeside(
  subject: Subject,
  { streams, intervalMs, answer }: GapLoad,
  beside: (failures: string[]) => Promise<unknown>,
): Promise<GapRun> {
  const gapsMs: number[] = [];
  const failures: string[] = [];
  const ask = { model: benchModel, prompt: "Count.", outputTokensMax: answer.tokens, stream: true };
  const source = new RequestSource(subject, ask);
  const open: Promise<void>[] = [];
  for (let index = 0; index < streams; index++) {
    open.push(stream(subject, source.next(), answer, gapsMs, failures));
    if (index % 10 === 9) await Bun.sleep(1);
  }
  await Bun.sleep(intervalMs * 5); // all of them run
  gapsMs.length = 0;
  const startedMs = performance.now();
  await beside(failures);
  const besideMs = performance.now() - startedMs;
  await Promise.all(open);
  return { gapsMs, besideMs, failures };
}

async function stream(
  subject: Subject,
  request: Buffer,
  answer: AnswerShape,
  gapsMs: number[],
  failures: string[],
): Promise<void> {
  const connection = await Connection.open(subject.port);
  const check = new StreamCheck(subject.dialect, answerText(answer));
  let lastMs = 0;
  const failure = await new Promise<string | null>((resolve) => {
    connection.ask(request, {
      body(text) {
        const lengthBefore = check.textLength;
        check.read(text);
        if (check.textLength === lengthBefore) return;
        const nowMs = performance.now();
        if (lastMs > 0) gapsMs.push(nowMs - lastMs);
        lastMs = nowMs;
      },
      end: (status) => resolve(check.failure(status)),
      failed: resolve,
    });
  });
  connection.close();
  if (failure !== null) failures.push(failure);
}
