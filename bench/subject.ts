// What a benchmark measures: the same load sent directly to the node, through nginx, or through Tollgate.
import type { BenchAsk, ClientDialect } from "./dialect.ts";
import type { PeerName } from "./peers.ts";

export type SubjectName = "direct" | "nginx" | "tollgate" | PeerName;

export type Subject = Readonly<{
  name: SubjectName;
  port: number;
  dialect: ClientDialect;
  /** The name by which it knows the node's model, where that is not the name that is asked for. */
  model?: string;
  /** Further lines of each request's head. */
  headers?: readonly string[];
  /** API keys that the requests use in turn: the flood limit holds for each account. */
  keys: readonly string[];
  /** The proxy's processes; none for `direct`. */
  pids: readonly number[];
  stop(): Promise<void>;
}>;

/** Makes the requests of one subject, one for each key, and hands them out in turn. */
export class RequestSource {
  readonly #requests: readonly Buffer[];
  #next = 0;

  constructor(subject: Subject, ask: BenchAsk) {
    const body = JSON.stringify(subject.dialect.body({ ...ask, model: subject.model ?? ask.model }));
    this.#requests = subject.keys.map((key) => requestBytes(subject, key, body));
  }

  next(): Buffer {
    const request = this.#requests[this.#next]!;
    this.#next = (this.#next + 1) % this.#requests.length;
    return request;
  }
}

function requestBytes(subject: Subject, key: string, body: string): Buffer {
  return Buffer.from(
    `POST ${subject.dialect.path} HTTP/1.1\r\nhost: 127.0.0.1:${subject.port}\r\nauthorization: Bearer ${key}\r\n` +
      (subject.headers ?? []).map((line) => `${line}\r\n`).join("") +
      `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

/** Runs `measure` for each subject `runs` times, every round in a new random order; reports progress as it goes. */
export async function interleaved<Measurement>(
  subjects: readonly Subject[],
  runs: number,
  measure: (subject: Subject) => Promise<Measurement>,
  describe: (measurement: Measurement) => string,
): Promise<Map<SubjectName, Measurement[]>> {
  const results = new Map<SubjectName, Measurement[]>(subjects.map((subject) => [subject.name, []]));
  for (let run = 1; run <= runs; run++) {
    for (const subject of shuffled(subjects)) {
      const measurement = await measure(subject);
      results.get(subject.name)!.push(measurement);
      console.log(`  run ${run}/${runs} ${subject.name.padEnd(8)} ${describe(measurement)}`);
    }
  }
  return results;
}

export function shuffled<Item>(items: readonly Item[]): Item[] {
  const result = [...items];
  for (let last = result.length - 1; last > 0; last--) {
    const other = Math.floor(Math.random() * (last + 1));
    [result[last], result[other]] = [result[other]!, result[last]!];
  }
  return result;
}
