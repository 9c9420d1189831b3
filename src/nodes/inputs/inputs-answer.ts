// Reads vectors or scores: each item goes to the sink as it comes. A missing or repeated one makes the answer invalid.
import { type InputsAsk, mostTokens } from "../../core/inputs.ts";
import { inputsAnswerMaxBytes } from "../../core/limits.ts";
import { refuse } from "../../core/refusals.ts";
import { type Ending, noUsage, type Sink, type Usage } from "../../core/types.ts";
import { type Failure, failed, failureOfEvent, nodeFailed } from "../failure/failure.ts";
import { parseNodeJson, record } from "../json.ts";
import { estimatedInput } from "../usage.ts";
import { ListScanner } from "./list-scanner.ts";
import { vectorOf } from "./vector.ts";

export class InputsAnswer {
  readonly #ask: InputsAsk;
  readonly #sink: Sink;
  readonly #scanner = new ListScanner((item) => this.#item(item));
  readonly #seen: Uint8Array;
  #items = 0;
  #bytes = 0;
  /** All vectors have the same. */
  #dimensions: number | null = null;
  failure: Failure | null = null;

  constructor(ask: InputsAsk, sink: Sink) {
    this.#ask = ask;
    this.#sink = sink;
    this.#seen = new Uint8Array(ask.inputs.count);
  }

  get begun(): boolean {
    return this.#items > 0;
  }

  /** Takes nothing after a failure. */
  push(bytes: Buffer, start: number, end: number): void {
    if (this.failure !== null) return;
    this.#bytes += end - start;
    if (this.#bytes > inputsAnswerMaxBytes) return void this.fail(nodeFailed("an answer that is too long"));
    this.#scanner.push(bytes, start, end);
    if (this.#scanner.fault !== null) this.fail(nodeFailed(`an answer with ${this.#scanner.fault}`));
  }

  fail(failure: Failure): Ending {
    this.failure ??= failure;
    return failed(this.failure);
  }

  cancelled(): Ending {
    return { kind: "cancelled", usage: noUsage, estimated: false };
  }

  end(): Ending {
    const { inputs } = this.#ask;
    const frame = parseNodeJson(this.#scanner.frame);
    const fields = record(frame);
    if (this.failure === null && fields?.["error"] != null && this.#items === 0) {
      return this.fail(failureOfEvent(this.#ask, this.#scanner.frame, false));
    }
    if (frame === undefined) return this.fail(nodeFailed("an answer that is no JSON"));
    const wanted = inputs.kind === "vectors" ? inputs.count : inputs.best;
    if (this.#items < wanted) return this.fail(nodeFailed(`${this.#items} results for ${wanted} inputs`));
    if (this.failure !== null) return failed(this.failure);
    const { usage, estimated } = this.#usage(fields);
    return { kind: "end", reason: "stop", stopSequence: null, usage, estimated };
  }

  #item(json: string): boolean {
    const { inputs } = this.#ask;
    const item = inputs.kind === "vectors" ? vectorOf(json, inputs.format) : scoreOf(json);
    if (item === null) return false;
    const { index } = item;
    if (index < 0 || index >= inputs.count || this.#seen[index] === 1) return false;
    if (item.dimensions !== null && !this.#fits(item.dimensions)) return false;
    this.#seen[index] = 1;
    this.#items++;
    this.#sink.piece({ kind: "input", index, json: item.json });
    return true;
  }

  #fits(dimensions: number): boolean {
    const { inputs } = this.#ask;
    const wanted = inputs.kind === "vectors" ? inputs.dimensions : null;
    if (wanted !== null && dimensions !== wanted) {
      const reason = `dimensions must be left out: the model makes vectors of ${dimensions} numbers here`;
      this.fail({
        refusal: refuse("malformed", { reason }),
        elsewhere: "unlike",
        cause: `vectors of ${dimensions} numbers, not ${wanted}`,
        blames: "client",
      });
      return false;
    }
    this.#dimensions ??= dimensions;
    return this.#dimensions === dimensions;
  }

  /** The node's report where it is plausible, otherwise the known or estimated tokens of the inputs. */
  #usage(fields: Record<string, unknown> | null): Readonly<{ usage: Usage; estimated: boolean }> {
    const tokens = reportedTokens(fields);
    const makesSense = tokens !== null && Number.isSafeInteger(tokens) && tokens > 0 && tokens <= mostTokens(this.#ask);
    const inputFresh = makesSense ? tokens : estimatedInput(this.#ask);
    return { usage: { inputFresh, inputCached: 0, output: 0, reasoning: 0 }, estimated: !makesSense };
  }
}

/** From the fields that engines use: OpenAI's, Jina's and vLLM's, and Cohere's. */
function reportedTokens(fields: Record<string, unknown> | null): number | null {
  const usage = record(fields?.["usage"]);
  const meta = record(fields?.["meta"]);
  const reports = [
    usage?.["prompt_tokens"],
    usage?.["total_tokens"],
    record(meta?.["tokens"])?.["input_tokens"],
    record(meta?.["billed_units"])?.["input_tokens"],
  ];
  return reports.find((tokens): tokens is number => typeof tokens === "number") ?? null;
}

function scoreOf(json: string): Readonly<{ index: number; dimensions: null; json: string }> | null {
  const item = record(parseNodeJson(json));
  const index = item?.["index"];
  const score = item?.["relevance_score"] ?? item?.["score"];
  if (!Number.isSafeInteger(index) || typeof score !== "number" || !Number.isFinite(score)) return null;
  return { index: index as number, dimensions: null, json: JSON.stringify(score) };
}
