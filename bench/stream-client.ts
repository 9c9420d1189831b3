// The streaming load client: opens streams spread over time, checks every token, its order and the terminator, and
// measures the time to the first token and to the end.
import { answerText } from "./answer.ts";
import type { AnswerShape } from "./answer.ts";
import { Connection } from "./connection.ts";
import { benchModel, type ClientDialect } from "./dialect.ts";
import type { Subject } from "./subject.ts";
import { RequestSource } from "./subject.ts";

export type StreamLoad = Readonly<{
  /** Streams open at once. */
  streams: number;
  /** Streams that each connection carries, one after the other. */
  repeats: number;
  /** The streams are opened evenly over this time. */
  spreadMs: number;
  answer: AnswerShape;
}>;

export type StreamRun = {
  /** Streams that arrived whole, with the terminator. */
  complete: number;
  /** Tokens that arrived, in order. */
  tokens: number;
  /** Events that carried text: fewer than `tokens` when a proxy merged some. */
  textEvents: number;
  /** Time from the request to the first text and to the end of the reply, one each for a complete stream. */
  firstTokenMs: number[];
  wholeMs: number[];
  /** Why streams did not arrive whole; empty after a good run. */
  failures: string[];
};

/** Runs the load to its end. A stream that breaks is counted in `failures` and not repeated. */
export async function runStreams(subject: Subject, load: StreamLoad): Promise<StreamRun> {
  const run: StreamRun = { complete: 0, tokens: 0, textEvents: 0, firstTokenMs: [], wholeMs: [], failures: [] };
  const ask = { model: benchModel, prompt: "Count.", outputTokensMax: load.answer.tokens, stream: true };
  const source = new RequestSource(subject, ask);
  const expected = answerText(load.answer);
  const startedMs = performance.now();
  const workers: Promise<void>[] = [];
  for (let index = 0; index < load.streams; index++) {
    const aheadMs = startedMs + (index * load.spreadMs) / load.streams - performance.now();
    if (aheadMs > 1) await Bun.sleep(aheadMs);
    workers.push(runConnection(subject, source, load, expected, run));
  }
  await Promise.all(workers);
  return run;
}

/**
 * As many streams that are all asked for in the same moment, on connections that are open before `opened` is called; so often
 * as `bursts`, one after the other, on the same connections.
 */
export async function runBurst(
  subject: Subject,
  streams: number,
  answer: AnswerShape,
  bursts = 1,
  opened: () => void = () => {},
): Promise<StreamRun> {
  const run: StreamRun = { complete: 0, tokens: 0, textEvents: 0, firstTokenMs: [], wholeMs: [], failures: [] };
  const ask = { model: benchModel, prompt: "Count.", outputTokensMax: answer.tokens, stream: true };
  const source = new RequestSource(subject, ask);
  const expected = answerText(answer);
  let connections = await Promise.all(Array.from({ length: streams }, () => Connection.open(subject.port)));
  opened();
  for (let burst = 0; burst < bursts; burst++) {
    connections = await Promise.all(
      connections.map((connection) => (connection.open ? connection : Connection.open(subject.port))),
    );
    await Promise.all(
      connections.map((connection) => runStream(connection, source.next(), subject.dialect, answer, expected, run)),
    );
  }
  for (const connection of connections) connection.close();
  return run;
}

async function runConnection(
  subject: Subject,
  source: RequestSource,
  load: StreamLoad,
  expected: string,
  run: StreamRun,
): Promise<void> {
  let connection = await Connection.open(subject.port);
  for (let repeat = 0; repeat < load.repeats; repeat++) {
    if (!connection.open) connection = await Connection.open(subject.port);
    await runStream(connection, source.next(), subject.dialect, load.answer, expected, run);
  }
  connection.close();
}

function runStream(
  connection: Connection,
  request: Buffer,
  dialect: ClientDialect,
  answer: AnswerShape,
  expected: string,
  run: StreamRun,
): Promise<void> {
  return new Promise((resolve) => {
    const check = new StreamCheck(dialect, expected);
    const sentMs = performance.now();
    let firstTokenMs = 0;
    const account = (failure: string | null) => {
      run.tokens += Math.floor(check.textLength / answer.tokenBytes);
      run.textEvents += check.textEvents;
      if (failure === null) {
        run.complete++;
        run.firstTokenMs.push(firstTokenMs);
        run.wholeMs.push(performance.now() - sentMs);
      } else {
        run.failures.push(failure);
      }
      resolve();
    };
    connection.ask(request, {
      body(text) {
        check.read(text);
        if (firstTokenMs === 0 && check.textLength > 0) firstTokenMs = performance.now() - sentMs;
      },
      end: (status) => account(check.failure(status)),
      failed: account,
    });
  });
}

export const noTerminator = "no terminator";

/** Compares a stream with the expected answer as it arrives. */
export class StreamCheck {
  textLength = 0;
  textEvents = 0;
  readonly #dialect: ClientDialect;
  readonly #expected: string;
  #carry = "";
  #ended = false;
  #mismatch: string | null = null;

  constructor(dialect: ClientDialect, expected: string) {
    this.#dialect = dialect;
    this.#expected = expected;
  }

  read(text: string): void {
    const received = this.#carry === "" ? text : this.#carry + text;
    let from = 0;
    for (let end = received.indexOf("\n\n"); end >= 0; end = received.indexOf("\n\n", from)) {
      this.#event(received.slice(from, end));
      from = end + 2;
    }
    this.#carry = from === received.length ? "" : received.slice(from);
  }

  /** Null when the answer arrived whole and ended well, else what is wrong. */
  failure(status: number): string | null {
    if (status !== 200) return `status ${status}: ${this.#carry.slice(0, 200)}`;
    if (this.#mismatch !== null) return this.#mismatch;
    if (this.textLength !== this.#expected.length) {
      return `${this.textLength} of ${this.#expected.length} characters arrived`;
    }
    return this.#ended ? null : noTerminator;
  }

  #event(event: string): void {
    if (event.startsWith(this.#dialect.terminator)) {
      this.#ended = true;
      return;
    }
    // Once all text is there, what follows may repeat it (the responses dialect does), and is not counted again.
    if (this.textLength === this.#expected.length) return;
    const key = event.indexOf(this.#dialect.streamTextKey);
    if (key < 0) return;
    const start = key + this.#dialect.streamTextKey.length;
    const piece = event.slice(start, event.indexOf('"', start));
    if (piece === "") return;
    if (!this.#expected.startsWith(piece, this.textLength)) {
      this.#mismatch ??= `"${piece}" at character ${this.textLength}`;
      return;
    }
    this.textLength += piece.length;
    this.textEvents++;
  }
}
