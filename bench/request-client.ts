// The load client for non-streaming requests: as fast as replies come (closed loop), or at a fixed rate whatever the
// replies do (open loop). Every reply's text is checked.
import type { AnswerShape } from "./answer.ts";
import { answerText } from "./answer.ts";
import { Connection } from "./connection.ts";
import { type BenchAsk, benchModel } from "./dialect.ts";
import type { Subject } from "./subject.ts";
import { RequestSource } from "./subject.ts";

export type RequestRun = {
  complete: number;
  /** From the first request to the last reply. */
  elapsedMs: number;
  /** One each for a complete reply; in an open loop from the moment at which the request was due. */
  latencyMs: number[];
  failures: string[];
};

export type RequestLoad = Readonly<{ requests: number; answer: AnswerShape; promptBytes: number }>;

/** Sends the requests over a fixed number of connections, each with one request open all the time. */
export async function runClosedLoop(subject: Subject, load: RequestLoad, connections: number): Promise<RequestRun> {
  const { run, source, expected } = prepare(subject, load);
  const open = await Promise.all(Array.from({ length: connections }, () => Connection.open(subject.port)));
  const startedMs = performance.now();
  let sent = 0;
  const worker = async (first: Connection) => {
    let connection = first;
    while (sent < load.requests) {
      sent++;
      if (!connection.open) connection = await Connection.open(subject.port);
      await request(connection, source.next(), subject, expected, performance.now(), run);
    }
    connection.close();
  };
  await Promise.all(open.map(worker));
  run.elapsedMs = performance.now() - startedMs;
  return run;
}

/**
 * Sends the requests at `perSecond`, opening connections as needed. Latency counts from the due time, so that a stall
 * is charged to every request that it delayed (no coordinated omission).
 */
export async function runOpenLoop(subject: Subject, load: RequestLoad, perSecond: number): Promise<RequestRun> {
  const { run, source, expected } = prepare(subject, load);
  const idle: Connection[] = [];
  const replies: Promise<void>[] = [];
  const send = async (dueMs: number) => {
    let connection = idle.pop();
    if (connection === undefined || !connection.open) connection = await Connection.open(subject.port);
    await request(connection, source.next(), subject, expected, dueMs, run);
    idle.push(connection);
  };
  const startedMs = performance.now();
  for (let sent = 0; sent < load.requests;) {
    const due = Math.min(load.requests, Math.floor(((performance.now() - startedMs) * perSecond) / 1_000) + 1);
    for (; sent < due; sent++) replies.push(send(startedMs + (sent * 1_000) / perSecond));
    await Bun.sleep(1);
  }
  await Promise.all(replies);
  run.elapsedMs = performance.now() - startedMs;
  for (const connection of idle) connection.close();
  return run;
}

function prepare(subject: Subject, load: RequestLoad) {
  const prompt = "p".repeat(load.promptBytes);
  const ask: BenchAsk = { model: benchModel, prompt, outputTokensMax: load.answer.tokens, stream: false };
  const run: RequestRun = { complete: 0, elapsedMs: 0, latencyMs: [], failures: [] };
  return { run, source: new RequestSource(subject, ask), expected: answerText(load.answer) };
}

function request(
  connection: Connection,
  bytes: Buffer,
  subject: Subject,
  expected: string,
  dueMs: number,
  run: RequestRun,
): Promise<void> {
  return new Promise((resolve) => {
    let body = "";
    connection.ask(bytes, {
      body(text) {
        body += text;
      },
      end(status) {
        if (status === 200 && body.includes(subject.dialect.replyTextKey + expected)) {
          run.complete++;
          run.latencyMs.push(performance.now() - dueMs);
        } else {
          run.failures.push(`status ${status}: ${body.slice(0, 200)}`);
        }
        resolve();
      },
      failed(reason) {
        run.failures.push(reason);
        resolve();
      },
    });
  });
}
