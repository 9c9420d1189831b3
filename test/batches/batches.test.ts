// Batches on the real program.
import { expect, test } from "bun:test";
import { contradictions, killed } from "./killed.ts";

/** TOLLGATE_BATCH_LINES chooses a longer run. */
const lines = Number(process.env["TOLLGATE_BATCH_LINES"] ?? 1_000);

test(
  `of ${lines} lines each is answered and charged once, whatever is killed meanwhile`,
  async () => {
    const report = await killed(lines, 700, lines === 1_000 ? 3 : Number.POSITIVE_INFINITY);
    console.log(`batches under kills: ${JSON.stringify({ ...report, wrong: report.wrong.length })}`);
    expect(report.wrong).toEqual([]);
    expect(report.kills).toBeGreaterThan(0);
  },
  120_000 + lines * 40,
);

test("the oracle finds a line that was lost, one that came twice, and a charge that is missing, doubled or another", () => {
  const usage = { input_tokens: 0, output_tokens: 0 };
  const result = { custom_id: "line-0", result: { type: "succeeded", message: { id: "msg_a", usage } } };
  expect(contradictions(["p"], [], [])).toContain("line 0 was delivered 0 times");
  expect(contradictions(["p"], [result, result], [])).toContain("line 0 was delivered 2 times");
  expect(contradictions(["p"], [result], [])).toContain("line 0 was charged 0 times");
  const row = { request_id: "req_a", input: 1, output: 1 } as never;
  expect(contradictions(["p"], [result], [row, row])).toContain("line 0 was charged 2 times");
  expect(contradictions(["p"], [result], [row])).toContain("line 0 was charged for other tokens");
});
