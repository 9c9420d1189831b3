// The request with which an operator tests a node: one token, requested like any other and charged to no one.
import { CancelSignal } from "../../core/cancel-signal.ts";
import type { Clock } from "../../core/clock.ts";
import { nodeTrialTimeoutMs } from "../limits.ts";
import type { Ask, Ending, Inputs, Model, Ms } from "../../core/types.ts";
import type { NodeEndpoint, NodeOutcome } from "../node-endpoint.ts";

/** The result of the test. */
export type Tested = Readonly<{
  /** Null where no token came. */
  firstTokenMs: Ms | null;
  tookMs: Ms;
  /** What went wrong, in words without an address; null where nothing did. */
  problem: string | null;
}>;

/** No account's number: accounts are numbered from 1. */
const noAccount = 0;

/** Resolves within half a minute. `onOutcome` gets the outcome, which counts for the node like that of any request. */
export async function testNode(
  endpoint: NodeEndpoint,
  model: Model,
  onOutcome: (outcome: NodeOutcome) => void,
  clock: Clock,
): Promise<Tested> {
  const askedAt = clock.monotonic();
  let firstTokenMs: Ms | null = null;
  const first = (): void => void (firstTokenMs ??= clock.monotonic() - askedAt);
  let cause: string | null = null;
  const outcome = (met: NodeOutcome): void => {
    cause = met.failure?.cause ?? null;
    onOutcome(met);
  };
  const cancelSignal = new CancelSignal();
  const timer = setTimeout(() => cancelSignal.abort(), nodeTrialTimeoutMs);
  const sink = { piece: first, literal: first, flush: () => null };
  const ending = await endpoint.send(
    testAsk(model),
    { account: noAccount, priority: "standard" },
    cancelSignal,
    sink,
    outcome,
  );
  clearTimeout(timer);
  const tookMs = clock.monotonic() - askedAt;
  // Its only token may be one that clients never see, such as the start of a thought.
  if (ending.kind === "end" && ending.usage.output > 0) firstTokenMs ??= tookMs;
  return { firstTokenMs, tookMs, problem: problemOf(ending, cause) };
}

function problemOf(ending: Ending, cause: string | null): string | null {
  if (ending.kind === "end") return null;
  if (ending.kind === "cancelled") return `it gave no answer within ${nodeTrialTimeoutMs / 1000} seconds`;
  return cause ?? "it refused the request";
}

/** Without thoughts where they can be switched off: they would use up the one token. */
function testAsk(model: Model): Ask {
  const inputs = inputsOf(model);
  return {
    endpoint: "/v1/chat/completions",
    coderBilling: "calls",
    model: { ...model, budgetLimitsAnswer: true },
    turns: [{ role: "user", content: "Hello" }],
    ...(inputs === null ? {} : { inputs }),
    ...voiceOf(model),
    tools: [],
    toolChoice: "auto",
    parallelToolCalls: null,
    stop: [],
    outputTokensMax: 1,
    effort: "off",
    format: null,
    webSearch: null,
    stream: true,
    sampling: {},
    bodyBytes: 100,
  };
}

function inputsOf({ kind }: Model): Inputs | null {
  if (kind === "embedding") return { kind: "vectors", count: 1, tokens: null, format: "float", dimensions: null };
  if (kind === "rerank") return { kind: "scores", count: 1, query: "Hello", best: 1, returnsDocuments: false };
  return null;
}

function voiceOf({ kind }: Model): Pick<Ask, "voice"> {
  if (kind === "speech") {
    return { voice: { kind: "spoken", characters: 5, format: "wav", fields: { input: "Hello", voice: "alloy" } } };
  }
  if (kind !== "transcription") return {};
  const read = (at: number, bytes: number) => Promise.resolve(silence.subarray(at, at + bytes));
  const file = { name: "silence.wav", bytes: silence.length, read, [Symbol.dispose]() {} };
  const length = { seconds: 1, isGuessed: false };
  return { voice: { kind: "heard", translates: false, file, ...length, fields: [], isJson: true } };
}

/** A second of it, as wave audio with 16,000 samples of 8 bits. */
const silence = Buffer.concat([
  Buffer.from(
    "RIFF\xa4\x3e\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x80\x3e\0\0\x80\x3e\0\0\x01\0\x08\0data\x80\x3e\0\0",
    "latin1",
  ),
  Buffer.alloc(16_000, 0x80),
]);
