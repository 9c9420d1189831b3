// What log lines look like, and what they never contain.
import { expect, test } from "bun:test";
import { type LogFormat, type LogLevel, openLog } from "../../src/core/log.ts";

function written(format: LogFormat, level: LogLevel = "info", secrets: readonly string[] = []) {
  const lines: string[] = [];
  const log = openLog({ level, format, time: () => 0, secrets: () => secrets, write: (line) => lines.push(line) });
  return { log, lines };
}

test("a line is one JSON object", () => {
  const { log, lines } = written("json");
  log("warn", "it happened", { node: "gpu-1", times: 2, why: null });
  expect(lines).toEqual([
    '{"at":"1970-01-01T00:00:00.000Z","level":"warn","event":"it happened","node":"gpu-1","times":2,"why":null}\n',
  ]);
});

test("on a terminal a line is plain words, and one line whatever its fields hold", () => {
  const { log, lines } = written("text");
  log("info", "it happened", { node: "gpu-1", reason: 'two words\nand "more"' });
  expect(lines).toEqual([
    '1970-01-01T00:00:00.000Z info  it happened node=gpu-1 reason="two words\\nand \\"more\\""\n',
  ]);
});

test.each(["json", "text"] as const)("a secret is blotted out of %s also where the line must escape it", (format) => {
  const secrets = ['pass"word\\of\tnode', 'sk-0123456789abcdef"tail'];
  const { log, lines } = written(format, "info", secrets);
  for (const secret of secrets) log("error", "refused", { error: `the node said ${secret} is wrong`, plain: secret });
  expect(lines.join("")).not.toMatch(/word|of|tail/);
  expect(lines.join("").match(/\[secret\]/g)).toHaveLength(4);
});

test("nothing that others wrote acts on a terminal, and JSON stays what it was", () => {
  const hostile = "\u001b[31m\u009b2J\u202egnp\u2066\u200f\u007f\r";
  for (const format of ["json", "text"] as const) {
    let line = "";
    const log = openLog({ level: "info", format, time: () => 0, write: (text) => (line = text) });
    log("warn", `a node says ${hostile}`, { bare: hostile, quoted: `${hostile} and more` });
    expect(line).not.toMatch(/[^\x20-\x7e\n]/);
    if (format === "text") expect(line).toContain("\\u001b[31m\\u009b2J\\u202egnp");
    else expect(JSON.parse(line)).toMatchObject({ event: `a node says ${hostile}`, bare: hostile });
  }
});

test("lines below the level are not written", () => {
  const { log, lines } = written("json", "warn");
  for (const level of ["debug", "info", "warn", "error"] as const) log(level, "it happened");
  expect(lines.map((line) => (JSON.parse(line) as { level: string }).level)).toEqual(["warn", "error"]);
});

test("keys, bearer tokens and what the configuration holds secret are blotted out wherever they stand", () => {
  const { log, lines } = written("json", "info", ["10.0.0.5:8000", "node-secret"]);
  const key = `sk-tg-${"a".repeat(43)}`;
  log("error", `refused ${key}`, { error: "cannot reach http://10.0.0.5:8000/v1 with node-secret, Bearer abcdefghij" });
  expect(lines[0]).toContain("refused [secret]");
  expect(lines[0]).toContain("cannot reach http://[secret]/v1 with [secret], [secret]");
});
