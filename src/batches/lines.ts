// Reads the lines of a batch's input, in a Worker: a million of them would keep the main thread busy for seconds, and one of 20 MB
// would stop it. Nothing but numbers of each line is kept.
import { open } from "node:fs/promises";
import { isRecord } from "../core/is-record.ts";
import { jsonExcess } from "../core/outside-json.ts";
import type { BatchError, BatchForm } from "./batch.ts";
import { lineRequestId, unrunLine, type Unrun } from "./line-error.ts";

const linesMax = 1_000_000;
const lineBytesMax = 20_000_000;
const customIdMaxLength = 512;
/** A longer list says no more, and each is a mistake of the same program. */
const errorsMax = 100;
const modelsMax = 1_000;
const chunkBytes = 1 << 20;
/** Prompts that begin alike up to one of these lengths stand beside each other; the longest first. */
const prefixLengths = [256, 1_024, 4_096, 16_384] as const;
const numbersOfPrefix = prefixLengths.length;

/** Lines of one model, in the order in which they run. */
export type ModelLines = Readonly<{ model: string; first: number; from: number; to: number }>;

/** `starts` and `sizes` in bytes, by the lines' places among those that are not empty; `numbers` in the file, from 1. */
export type LineIndex = Readonly<{
  starts: Float64Array;
  sizes: Uint32Array;
  numbers: Uint32Array;
  order: Uint32Array;
  models: readonly ModelLines[];
  errors: readonly BatchError[];
}>;

type Line = Readonly<{ bytes: Buffer; start: number; number: number }>;

/** Lines that are not empty. Throws RangeError with the number of one that is too long. */
export async function* linesOf(path: string, maxBytes = Number.POSITIVE_INFINITY): AsyncGenerator<Line> {
  const file = await open(path, "r");
  try {
    let rest = Buffer.alloc(0);
    let start = 0;
    let number = 0;
    for (;;) {
      const chunk = Buffer.allocUnsafe(chunkBytes);
      const { bytesRead } = await file.read(chunk, 0, chunkBytes);
      const isLast = bytesRead === 0;
      // A line over many chunks is put together once, by doubling reads would save little: 20 chunks at most.
      const bytes =
        rest.length === 0 ? chunk.subarray(0, bytesRead) : Buffer.concat([rest, chunk.subarray(0, bytesRead)]);
      let from = 0;
      for (let searched = rest.length; ;) {
        const end = bytes.indexOf(10, Math.max(from, searched));
        if (end === -1 && !(isLast && from < bytes.length)) break;
        const to = end === -1 ? bytes.length : end;
        number += 1;
        const line = bytes.subarray(from, to);
        if (line.length > maxBytes) throw new RangeError(String(number));
        if (!isBlank(line)) yield { bytes: line, start: start + from, number };
        from = searched = to + 1;
        if (end === -1) break;
      }
      if (isLast) return;
      rest = Buffer.from(bytes.subarray(from));
      start += from;
      if (rest.length > maxBytes) throw new RangeError(String(number + 1));
    }
  } finally {
    await file.close();
  }
}

const isBlank = (line: Buffer): boolean => line.every((byte) => byte === 32 || byte === 13 || byte === 9);

/** Reads all lines; where one is wrong, nothing of the batch runs. */
export async function indexOf(path: string, endpoint: string): Promise<LineIndex> {
  const errors: BatchError[] = [];
  const wrong = (line: number | null, code: string, message: string, param: string | null = null): void => {
    if (errors.length < errorsMax) errors.push({ code, line, message, param });
  };
  let room = 1_024;
  let lines = columns(room);
  let count = 0;
  const models = new Map<string, { place: number; first: number; lines: number }>();
  try {
    for await (const { bytes, start, number } of linesOf(path, lineBytesMax)) {
      if (count === linesMax) {
        wrong(number, "too_many_lines", `A batch may have ${linesMax} lines`);
        break;
      }
      const read = readLine(bytes, endpoint);
      if (typeof read === "string") {
        const [code, param, message] = read.split("|") as [string, string, string];
        wrong(number, code, message, param === "" ? null : param);
        continue;
      }
      if (errors.length > 0) continue;
      if (count === room) lines = columns((room *= 4), lines);
      let model = models.get(read.model);
      if (model === undefined) {
        if (models.size === modelsMax) {
          wrong(number, "too_many_models", `A batch may ask ${modelsMax} models`, "body.model");
          continue;
        }
        models.set(read.model, (model = { place: models.size, first: number, lines: 0 }));
      }
      model.lines += 1;
      lines.starts[count] = start;
      lines.sizes[count] = bytes.length;
      lines.numbers[count] = number;
      lines.models[count] = model.place;
      lines.ids[count] = BigInt(Bun.hash(read.customId));
      const prompt = promptOf(read.body);
      for (let place = 0; place < numbersOfPrefix; place += 1) {
        lines.prefixes[count * numbersOfPrefix + place] = Number(
          Bun.hash(prompt.slice(0, prefixLengths[place])) & 0xffffffffn,
        );
      }
      count += 1;
    }
  } catch (thrown) {
    if (!(thrown instanceof RangeError)) throw thrown;
    wrong(Number(thrown.message), "line_too_long", `A line may have ${lineBytesMax} bytes`);
  }
  if (count === 0 && errors.length === 0) wrong(null, "empty_file", "The input file has no lines");
  for (const number of repeatedIn(lines.ids.subarray(0, count), lines.numbers)) {
    wrong(number, "duplicate_custom_id", "custom_id must be unique within a batch", "custom_id");
  }
  const order = Uint32Array.from({ length: count }, (_, place) => place).sort(
    (one, other) =>
      lines.models[one]! - lines.models[other]! || comparePrefixes(lines.prefixes, one, other) || one - other,
  );
  let from = 0;
  return {
    starts: lines.starts.slice(0, count),
    sizes: lines.sizes.slice(0, count),
    numbers: lines.numbers.slice(0, count),
    order,
    models: [...models].map(([model, { first, lines }]) => ({ model, first, from, to: (from += lines) })),
    errors,
  };
}

type Columns = Pick<LineIndex, "starts" | "sizes" | "numbers"> &
  Readonly<{ models: Uint16Array; ids: BigUint64Array; prefixes: Uint32Array }>;

/** Those of `before`, with more room. */
function columns(room: number, before?: Columns): Columns {
  const made = {
    starts: new Float64Array(room),
    sizes: new Uint32Array(room),
    numbers: new Uint32Array(room),
    models: new Uint16Array(room),
    ids: new BigUint64Array(room),
    prefixes: new Uint32Array(room * numbersOfPrefix),
  };
  if (before === undefined) return made;
  const { starts, sizes, numbers, models, ids, prefixes } = before;
  made.starts.set(starts);
  made.sizes.set(sizes);
  made.numbers.set(numbers);
  made.models.set(models);
  made.ids.set(ids);
  made.prefixes.set(prefixes);
  return made;
}

function comparePrefixes(prefixes: Uint32Array, one: number, other: number): number {
  for (let place = 0; place < numbersOfPrefix; place += 1) {
    const difference = prefixes[one * numbersOfPrefix + place]! - prefixes[other * numbersOfPrefix + place]!;
    if (difference !== 0) return difference;
  }
  return 0;
}

/** The numbers of lines whose id another line before them has. Of a million ids, two differ with one hash once in 40 million files. */
function repeatedIn(ids: BigUint64Array, numbers: Uint32Array): number[] {
  const sorted = ids.toSorted();
  const repeated = new Set<bigint>();
  for (let place = 1; place < sorted.length; place += 1) {
    if (sorted[place] === sorted[place - 1]) repeated.add(sorted[place]!);
  }
  if (repeated.size === 0) return [];
  const seen = new Set<bigint>();
  const found: number[] = [];
  ids.forEach((id, place) => {
    if (!repeated.has(id)) return;
    if (seen.has(id)) found.push(numbers[place]!);
    seen.add(id);
  });
  return found;
}

type ReadLine = Readonly<{ customId: string; model: string; body: Readonly<Record<string, unknown>> }>;

/** The line, or what is wrong with it as "code|param|message". */
function readLine(bytes: Buffer, endpoint: string): ReadLine | string {
  let json: unknown;
  const text = bytes.toString();
  const excess = jsonExcess(text);
  if (excess !== null) return `invalid_json_line||This line ${excess}`;
  try {
    json = JSON.parse(text);
  } catch {
    return "invalid_json_line||This line is not valid JSON";
  }
  if (!isRecord(json)) return "invalid_json_line||This line must be a JSON object";
  const { custom_id: customId, method, url, body } = json;
  if (typeof customId !== "string" || customId === "" || customId.length > customIdMaxLength) {
    return `missing_required_parameter|custom_id|custom_id must be a text of 1 to ${customIdMaxLength} characters`;
  }
  if (method !== "POST") return 'invalid_method|method|method must be "POST"';
  if (url !== endpoint) return `mismatched_url|url|url must be "${endpoint}", the endpoint of the batch`;
  if (!isRecord(body)) return "missing_required_parameter|body|body must be the request, a JSON object";
  const { model } = body;
  if (typeof model !== "string" || model === "") {
    return "missing_required_parameter|body.model|body.model must name the model";
  }
  for (const [field, why] of Object.entries(unfit)) {
    const { [field]: given = null } = body;
    if (given !== null && given !== false) return `invalid_request|body.${field}|body.${field} must be absent: ${why}`;
  }
  return { customId, model, body };
}

/** What no line may ask for. */
const unfit = {
  stream: "a batch has whole replies",
  background: "a batch is one",
  conversation: "the lines of a batch run in any order",
} as const;

/** The line's body as it is run: a million answers would push out all responses that are stored. */
export const runBody = (endpoint: string, body: object): object =>
  endpoint === "/v1/responses" ? { ...body, store: false } : body;

/** Its beginning is what prompts share. */
function promptOf(body: Readonly<Record<string, unknown>>): string {
  const { system, instructions, tools, messages, input, prompt, query } = body;
  return JSON.stringify([tools ?? null, system ?? instructions ?? null, messages ?? input ?? prompt ?? query ?? null]);
}

/** The values of the list `requests` in a body such as Anthropic's clients send, one after the other. Throws RangeError, with why. */
async function* requestsIn(path: string): AsyncGenerator<string> {
  let outer = "";
  let parts: Buffer[] = [];
  let partsBytes = 0;
  let depth = 0;
  let isText = false;
  let isEscaped = false;
  let isInside = false;
  let count = 0;
  const taken = (): string => {
    const value = Buffer.concat(parts).toString();
    parts = [];
    partsBytes = 0;
    count += 1;
    return value;
  };
  for await (const { buffer, byteOffset, byteLength } of Bun.file(path).stream()) {
    const bytes = Buffer.from(buffer, byteOffset, byteLength);
    let from = 0;
    const keep = (to: number): void => {
      const piece = bytes.subarray(from, to);
      from = to;
      if (!isInside) outer += piece.toString("latin1");
      else partsBytes += parts.push(piece) && piece.length;
      if (partsBytes > lineBytesMax) throw new RangeError(`requests.${count}: may have ${lineBytesMax} bytes`);
      if (outer.length > outerBytesMax) throw new RangeError("requests: must be what the request body has");
    };
    for (let at = 0; at < bytes.length; at += 1) {
      const byte = bytes[at]!;
      if (isText) {
        if (isEscaped) isEscaped = false;
        else if (byte === 92) isEscaped = true;
        else if (byte === 34) isText = false;
      } else if (byte === 34) isText = true;
      else if (byte === 91 || byte === 123) {
        depth += 1;
        if (depth !== 2 || byte !== 91) continue;
        keep(at + 1);
        isInside = count === 0 && namesRequests(outer);
      } else if (byte === 93 || byte === 125) {
        depth -= 1;
        if (!isInside || depth !== 1) continue;
        keep(at);
        const last = taken();
        if (count > 1 || last.trim() !== "") yield last;
        isInside = false;
      } else if (byte === 44 && isInside && depth === 2) {
        keep(at);
        from += 1;
        yield taken();
      }
    }
    keep(bytes.length);
  }
  const rest: unknown = JSON.parse(Buffer.from(outer + (isInside ? "!" : ""), "latin1").toString());
  if (!isRecord(rest) || !Array.isArray(rest["requests"])) throw new RangeError(noRequests);
}

const outerBytesMax = 64 * 1024;
const requestsMax = 100_000;
const noRequests = "requests: must be a list of one or more requests";

/** Whether the list that has just begun is that member. */
function namesRequests(outer: string): boolean {
  const before = outer.slice(-64, -1).trimEnd();
  return before.endsWith(":") && before.slice(0, -1).trimEnd().endsWith('"requests"');
}

/** They become the lines of a file; or says what is wrong with one. Gives their number. */
export async function writeInline(from: string, endpoint: string, path: string): Promise<string | number> {
  const seen = new Set<string>();
  const file = Bun.file(path).writer();
  let unflushed = 0;
  try {
    for await (const text of requestsIn(from)) {
      const at = `requests.${seen.size}`;
      const excess = jsonExcess(text);
      if (excess !== null) return `${at}: ${excess}`;
      const request: unknown = JSON.parse(text);
      const { custom_id: customId = null, params = null } = isRecord(request) ? request : {};
      if (seen.size === requestsMax) return `requests: may be ${requestsMax}`;
      if (typeof customId !== "string" || !/^[a-zA-Z0-9_-]{1,64}$/.test(customId)) {
        return `${at}.custom_id: must be 1 to 64 letters, digits, dashes and underscores`;
      }
      if (seen.has(customId)) return `${at}.custom_id: must be unique within a batch`;
      seen.add(customId);
      if (!isRecord(params)) return `${at}.params: must be the request, an object`;
      if (typeof params["model"] !== "string") return `${at}.params.model: must name the model`;
      if (params["stream"] === true) return `${at}.params.stream: must be absent: a batch has whole replies`;
      void file.write(`${JSON.stringify({ custom_id: customId, method: "POST", url: endpoint, body: params })}\n`);
      unflushed += text.length;
      if (unflushed < chunkBytes) continue;
      await file.flush();
      unflushed = 0;
    }
  } catch (error) {
    const { message } = error as Error;
    if (error instanceof RangeError) return message;
    if (error instanceof SyntaxError) return `The request body is not valid JSON: ${message}`;
    throw error;
  } finally {
    await file.end();
  }
  return seen.size === 0 ? noRequests : seen.size;
}

/** Writes what is said of the lines that have not run, of which `isDone` has 0. */
export async function writeUnrun(
  path: string,
  {
    to,
    batchId,
    form,
    isDone,
    unrun,
  }: Readonly<{ to: string; batchId: string; form: BatchForm; isDone: Uint8Array; unrun: Unrun }>,
): Promise<number> {
  const file = Bun.file(to).writer();
  let place = 0;
  let written = 0;
  for await (const { bytes } of linesOf(path)) {
    if (isDone[place] === 0) {
      const { custom_id: customId } = JSON.parse(bytes.toString()) as { custom_id: string };
      void file.write(`${unrunLine(form, lineRequestId(batchId, place), customId, unrun)}\n`);
      if (++written % 1_000 === 0) await file.flush();
    }
    place += 1;
  }
  await file.end();
  return written;
}
