// Arrivals in the order in which they came to the line: a column for each of their numbers, 60 bytes a request.
import { type ArrivalPage, arrivalColumns, type ArrivalColumn } from "../../core/arrivals.ts";
import type { AccountId, Ms } from "../../core/types.ts";

const columns = [
  /** From its arrival until it came to the line. */
  "beforeMs",
  /** Places among the trace's accounts, models and nodes; -1: unknown. */
  "account",
  "model",
  "node",
  "member",
  "rank",
  "input",
  "cached",
  "output",
  /** NaN where they were not measured. */
  "waitMs",
  "sentMs",
  "firstTokenMs",
  "durationMs",
] as const;
type Column = (typeof columns)[number];

export type Trace = Readonly<
  Record<Column, Float32Array> & {
    length: number;
    /** By the wall clock. */
    lineAt: Float64Array;
    accounts: readonly AccountId[];
    models: readonly string[];
    nodes: readonly string[];
  }
>;

const places = Object.fromEntries(arrivalColumns.map((name, at) => [name, at])) as Record<ArrivalColumn, number>;
const same = ["member", "rank", "input", "output", "waitMs", "sentMs", "firstTokenMs", "durationMs"] as const;

/** Pages become columns as they come, in chunks, so that no page is kept. */
export class TraceReader {
  readonly #accounts = new Numbering<AccountId>();
  readonly #models = new Numbering<string>();
  readonly #nodes = new Numbering<string>();
  readonly #chunks: Chunk[] = [];
  #length = 0;

  /** `from`: what came before is left out. */
  add({ numbers, names }: ArrivalPage, from: Ms): void {
    const chunk = chunkOf(numbers.length / arrivalColumns.length);
    let at = 0;
    for (let row = 0; row < numbers.length; row += arrivalColumns.length) {
      const of = (column: ArrivalColumn): number => numbers[row + places[column]]!;
      const cameAt = of("endedAt") - (of("durationMs") || 0);
      if (cameAt < from) continue;
      // What came before the line, such as the fetching of images, comes before it here, too.
      const beforeMs = Math.max(0, (of("sentMs") || 0) - (of("waitMs") || 0));
      chunk.lineAt[at] = cameAt + beforeMs;
      chunk.beforeMs[at] = beforeMs;
      chunk.account[at] = this.#accounts.placeOf(of("account"));
      chunk.model[at] = this.#models.placeOf(names[of("model")]!);
      chunk.node[at] = of("node") < 0 ? -1 : this.#nodes.placeOf(names[of("node")]!);
      chunk.cached[at] = Math.min(of("cached"), Math.max(0, of("input") - 1));
      for (const name of same) chunk[name][at] = of(name);
      at++;
    }
    this.#length += chunk.length = at;
    if (at > 0) this.#chunks.push(chunk);
  }

  /** A column at a time, whose chunks go as it is sorted. */
  trace(): Trace {
    const length = this.#length;
    const lineAt = new Float64Array(length);
    this.#fill(lineAt, "lineAt");
    const order = new Uint32Array(length).map((_, at) => at);
    order.sort((one, other) => lineAt[one]! - lineAt[other]! || one - other);
    const column = new Float32Array(length);
    const sorted = columns.map((name) => {
      this.#fill(column, name);
      return [name, new Float32Array(length).map((_, at) => column[order[at]!]!)] as const;
    });
    return {
      ...(Object.fromEntries(sorted) as Record<Column, Float32Array>),
      length,
      lineAt: lineAt.sort(),
      accounts: this.#accounts.list,
      models: this.#models.list,
      nodes: this.#nodes.list,
    };
  }

  #fill(into: Float32Array | Float64Array, name: Column | "lineAt"): void {
    let at = 0;
    for (const chunk of this.#chunks) {
      into.set(chunk[name]!.subarray(0, chunk.length), at);
      at += chunk.length;
      delete chunk[name];
    }
  }
}

/** Columns go one by one. */
type Chunk = { length: number } & Partial<Record<Column, Float32Array> & { lineAt: Float64Array }>;

const chunkOf = (rows: number): Required<Chunk> => ({
  ...(Object.fromEntries(columns.map((name) => [name, new Float32Array(rows)])) as Record<Column, Float32Array>),
  lineAt: new Float64Array(rows),
  length: 0,
});

class Numbering<Name> {
  readonly list: Name[] = [];
  readonly #places = new Map<Name, number>();

  placeOf(name: Name): number {
    const known = this.#places.get(name);
    if (known !== undefined) return known;
    this.#places.set(name, this.list.length);
    return this.list.push(name) - 1;
  }
}
