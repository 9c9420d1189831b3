// How fast are tokens counted, also of texts made to be slow, and what does a count cost the main thread?
//
//   bun bench/tokens.ts [--bytes 4000000] [--runs 5] [--reference-bytes 20000] [--round-trips 2000] [--quick]
import { isRefusal } from "../src/core/refusals.ts";
import { TokenCounter } from "../src/tokens/counter.ts";
import { TokenReading, Tokenizer } from "../src/tokens/tokenizer.ts";
import { readFlags } from "./flags.ts";
import type { Result } from "./result.ts";
import { keepResult } from "./result.ts";
import { percentile, spread } from "./statistics.ts";
import { proseName, texts } from "./token-texts.ts";
import { loadTokenizers, type Tokenizers } from "./tokenizers.ts";

export const tokensDefaults = {
  /** Size of each text. */
  bytes: 4_000_000,
  runs: 5,
  /** Others get the start of a text, because they are quadratic on long runs: 100 KB of one letter take seconds. */
  referenceBytes: 20_000,
  roundTrips: 2_000,
};
export type TokensFlags = typeof tokensDefaults;

/** The start of a text is encoded so often, or for so long. */
const startRunsMax = 30;
const startRunsMs = 200;

type Measured = Readonly<{
  name: string;
  bytes: number;
  tokens: number;
  runsMs: readonly number[];
  /** By tokenizer, on the start of the text. */
  starts: ReadonlyMap<string, Start>;
}>;
type Start = Readonly<{ ms: number; sameTokens: boolean }>;

/** Counts every text `runs` times on this thread, and its start with every tokenizer; throws where ours is not exact. */
export function measureTexts(flags: TokensFlags, tokenizers: Tokenizers): Measured[] {
  const tokenizer = new Tokenizer("o200k_base");
  return Object.entries(texts).map(([name, make]) => {
    const bytes = make(flags.bytes);
    const starts = measureStarts(new TextDecoder().decode(bytes.subarray(0, flags.referenceBytes)), flags, tokenizers);
    if (!starts.get("tollgate")!.sameTokens) throw new Error(`${name}: other tokens than tiktoken's`);
    let tokens = 0;
    const runsMs = Array.from({ length: flags.runs }, () =>
      timed(() => {
        const reading = new TokenReading(tokenizer, bytes, false);
        reading.advance(Infinity);
        tokens = reading.count;
      }),
    );
    console.log(`  ${name}: ${spread(runsMs, 0)} ms`);
    return { name, bytes: bytes.length, tokens, runsMs, starts };
  });
}

function measureStarts(start: string, flags: TokensFlags, { makers }: Tokenizers): Map<string, Start> {
  const expected = makers.get("tiktoken")!()(start);
  return new Map(
    [...makers].map(([name, make]) => {
      let tokens: ArrayLike<number> = [];
      let fastestMs = Infinity;
      // A new encoder each time, since some remember the pieces that they have merged.
      for (let run = 0, totalMs = 0; run < startRunsMax && totalMs < startRunsMs; run++) {
        const encode = make();
        const elapsedMs = timed(() => (tokens = encode(start)));
        fastestMs = Math.min(fastestMs, elapsedMs);
        totalMs += elapsedMs;
      }
      const sameTokens = Bun.deepEquals(Array.from(tokens), Array.from(expected));
      return [name, { ms: fastestMs, sameTokens }];
    }),
  );
}

function timed(work: () => void): number {
  const startedMs = performance.now();
  work();
  return performance.now() - startedMs;
}

/** The Worker from outside: round trips of a short text, the same beside long texts, and its memory. */
export async function measureCounter(flags: TokensFlags) {
  const stays = new AbortController().signal;
  const counter = new TokenCounter({ log: (_level, event) => console.log(`  ${event}`) });
  const roundTrip = async (account: number) => {
    const startedMs = performance.now();
    if (isRefusal(await counter.count("o200k_base", ["How many tokens is this?"], account, stays)))
      throw new Error("refused");
    return performance.now() - startedMs;
  };
  const withoutMb = residentMb();
  const firstMs = await roundTrip(1);
  for (let warmUp = 0; warmUp < flags.roundTrips; warmUp++) await roundTrip(1);
  const tablesMb = residentMb() - withoutMb;
  const aloneMs: number[] = [];
  for (let trip = 0; trip < flags.roundTrips; trip++) aloneMs.push(await roundTrip(1));

  const long = new TextDecoder().decode(texts["a"]!(flags.bytes));
  let longLeft = 20;
  const postMs: number[] = [];
  const longs = Array.from({ length: longLeft }, () => {
    const startedMs = performance.now();
    const counted = counter.count("o200k_base", [long], 2, stays).then(() => longLeft--);
    postMs.push(performance.now() - startedMs);
    return counted;
  });
  const besideMs: number[] = [];
  do besideMs.push(await roundTrip(1));
  while (longLeft > 10);
  await Promise.all(longs);
  await counter.close();
  return { firstMs, tablesMb, aloneMs, besideMs, postMs };
}

function residentMb(): number {
  Bun.gc(true);
  return process.memoryUsage.rss() / 1e6;
}

function resultOf(
  flags: TokensFlags,
  measured: readonly Measured[],
  { makers, skipped }: Tokenizers,
  counter: Awaited<ReturnType<typeof measureCounter>>,
): Result {
  const { firstMs, tablesMb, aloneMs, besideMs, postMs } = counter;
  const proseMs = Math.min(...measured.find(({ name }) => name === proseName)!.runsMs);
  return {
    bench: "tokens",
    variant: "",
    question: "Counting tokens",
    columns: [
      ...["text", "MB", "tokens", "ms, min / median / max", "x prose"],
      ...[...makers.keys()].map((name) => `${name}, start`),
    ],
    rows: measured.map(({ name, bytes, tokens, runsMs, starts }) => [
      name,
      (bytes / 1e6).toFixed(1),
      String(tokens),
      spread(runsMs, 0),
      (Math.min(...runsMs) / proseMs).toFixed(1),
      ...[...starts.values()].map(
        ({ ms, sameTokens }) => `${ms.toFixed(ms < 10 ? 2 : 0)}${sameTokens ? "" : " (other tokens)"}`,
      ),
    ]),
    chart: null,
    failures: 0,
    notes: [
      `Every text is one string; the tokens are those of tiktoken's o200k_base. "x prose": the fastest run of each. "start": ms of each tokenizer for the ` +
        `first ${flags.referenceBytes} bytes alone, the fastest of up to ${startRunsMax} runs. More would take the others ` +
        "minutes: on long runs their time grows with the square of the length.",
      ...skipped,
      `A short text through the Worker: p50 ${percentile(aloneMs, 0.5).toFixed(3)} ms, p99 ${percentile(aloneMs, 0.99).toFixed(3)} ms; ` +
        `the first one, which loads the tables, ${firstMs.toFixed(0)} ms. While 20 texts of ${(flags.bytes / 1e6).toFixed(1)} MB of ` +
        `one letter of another account are counted: p50 ${percentile(besideMs, 0.5).toFixed(1)} ms, p99 ${percentile(besideMs, 0.99).toFixed(1)} ms. ` +
        `Handing one of them over takes the main thread ${percentile(postMs, 0.5).toFixed(1)} ms (p50). ` +
        `The Worker and its tables take ${tablesMb.toFixed(0)} MB, from the first count until some minutes after the last.`,
    ],
  };
}

if (import.meta.main) {
  const flags = readFlags(tokensDefaults, { bytes: 20_000, runs: 1, referenceBytes: 2_000, roundTrips: 20 });
  // First, so that nothing else has grown the process when the Worker's memory is measured.
  const counter = await measureCounter(flags);
  const tokenizers = await loadTokenizers();
  await keepResult(resultOf(flags, measureTexts(flags, tokenizers), tokenizers, counter));
}
