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

/** Lets go of each page as it is read. `from`: what came before is left out. */
export function traceOf(pages: ArrivalPage[], from: Ms): Trace {
  const rows = pages.reduce((sum, { numbers }) => sum + numbers.length / arrivalColumns.length, 0);
  const [accounts, models, nodes] = [new Numbering<AccountId>(), new Numbering<string>(), new Numbering<string>()];
  const lineAt = new Float64Array(rows);
  const read = Object.fromEntries(columns.map((name) => [name, new Float32Array(rows)])) as Record<
    Column,
    Float32Array
  >;
  let length = 0;
  for (let page = pages.shift(); page !== undefined; page = pages.shift()) {
    const { numbers, names } = page;
    for (let row = 0; row < numbers.length; row += arrivalColumns.length) {
      const of = (column: ArrivalColumn): number => numbers[row + places[column]]!;
      const cameAt = of("endedAt") - (of("durationMs") || 0);
      if (cameAt < from) continue;
      // What came before the line, such as the fetching of images, comes before it here, too.
      const beforeMs = Math.max(0, (of("sentMs") || 0) - (of("waitMs") || 0));
      lineAt[length] = cameAt + beforeMs;
      read.beforeMs[length] = beforeMs;
      read.account[length] = accounts.placeOf(of("account"));
      read.model[length] = models.placeOf(names[of("model")]!);
      read.node[length] = of("node") < 0 ? -1 : nodes.placeOf(names[of("node")]!);
      read.cached[length] = Math.min(of("cached"), Math.max(0, of("input") - 1));
      for (const name of same) read[name][length] = of(name);
      length++;
    }
  }
  const order = new Uint32Array(length).map((_, at) => at);
  order.sort((one, other) => lineAt[one]! - lineAt[other]! || one - other);
  const sorted = columns.map((name) => {
    const column = read[name];
    return [name, new Float32Array(length).map((_, at) => column[order[at]!]!)] as const;
  });
  return {
    ...(Object.fromEntries(sorted) as Record<Column, Float32Array>),
    length,
    lineAt: new Float64Array(length).map((_, at) => lineAt[order[at]!]!),
    accounts: accounts.list,
    models: models.list,
    nodes: nodes.list,
  };
}

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
