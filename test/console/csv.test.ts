// Usage as CSV: nothing that somebody else named is a formula, wherever a spreadsheet takes the line apart.
import { expect, test } from "bun:test";
import type { UsageRow } from "../../src/account/usage-row.ts";
import { csvHead, csvLineOf } from "../../src/console/csv.ts";

const row: UsageRow = {
  time: "2026-03-28T12:00:00.000Z",
  request_id: "req_1",
  endpoint: "chat",
  model: "core-3",
  input: 1,
  cached_input: 0,
  output: 2,
  reasoning: 0,
  billed_tokens: 3,
  cost_usd: 0.000015,
  estimated: false,
  key: "default",
  end_user: null,
};
const cellOf = (end_user: string): string =>
  csvLineOf({ ...row, end_user }).slice(csvLineOf(row).length - "\r\n".length, -"\r\n".length);

test.each([
  ["=1+1", "'=1+1"],
  ["+1", "'+1"],
  ["-1", "'-1"],
  ["@SUM(A1)", "'@SUM(A1)"],
  ["＝1", "'＝1"],
  [" =1", " '=1"],
  ["x;=1", "x;'=1"],
  ["x; =1;+2", "x; '=1;'+2"],
  ["x\t@y|=z", "x\t'@y|'=z"],
  ["a,=1", `"a,'=1"`],
  ['x;"=1"', `"x;""'=1"""`],
  ["x\r\n=1", `"x\r\n'=1"`],
  ["\tx", "'\tx"],
  ["\rx", `"'\rx"`],
  ["a-b@c.de = f+g", "a-b@c.de = f+g"],
  ["Müller; Söhne", "Müller; Söhne"],
])("%j", (said, cell) => expect(cellOf(said)).toBe(cell));

test("every column has its name", () => expect(csvHead.split(",")).toHaveLength(csvLineOf(row).split(",").length));
