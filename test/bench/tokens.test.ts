// The benchmark of counting at a tiny size: its texts have tiktoken's tokens, and every round trip is answered.
import { expect, test } from "bun:test";
import { countBesideStreamsDefaults, measureGaps } from "../../bench/count-beside-streams.ts";
import { loadTokenizers } from "../../bench/tokenizers.ts";
import { measureCounter, measureTexts, tokensDefaults } from "../../bench/tokens.ts";

const flags = { ...tokensDefaults, bytes: 3_000, runs: 2, referenceBytes: 300, roundTrips: 5 };

test("tokens counts every text and compares its start with tiktoken", async () => {
  for (const { bytes, tokens, runsMs, starts } of measureTexts(flags, await loadTokenizers())) {
    expect(bytes).toBeWithin(2_990, 3_300);
    expect(tokens).toBeGreaterThan(0);
    expect(runsMs).toHaveLength(2);
    expect(starts.get("tiktoken")).toMatchObject({ sameTokens: true });
  }
});

test("tokens asks the Worker as often as told, also beside long texts", async () => {
  const { aloneMs, besideMs, postMs } = await measureCounter(flags);
  expect(aloneMs).toHaveLength(5);
  expect(besideMs.length).toBeGreaterThan(0);
  expect(postMs).toHaveLength(20);
});

test("count-beside-streams has a gap before each further token of every stream, and every count is answered", async () => {
  const small = { streams: 5, tokens: 20, intervalMs: 5, counts: 2, bytes: 300_000, runs: 1 };
  const { alone, beside } = await measureGaps({ ...countBesideStreamsDefaults, ...small });
  for (const { gapsMs, failures } of [...alone, ...beside]) {
    expect(failures).toEqual([]);
    expect(gapsMs.length).toBeWithin(1, 5 * 19 + 1);
  }
  expect(beside[0]!.besideMs).toBeGreaterThan(0);
});
