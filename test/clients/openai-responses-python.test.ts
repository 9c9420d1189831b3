// The official Python client over the responses dialect, sync and async. TOLLGATE_PYTHON names the interpreter of a
// virtual environment that has requirements.txt installed.
import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { missing } from "../fixtures/optional.ts";
import { Stack } from "../fixtures/stack.ts";

const python = process.env["TOLLGATE_PYTHON"] ?? join(import.meta.dir, ".venv/bin/python");
const absent = missing(
  "the Python client",
  existsSync(python),
  "make a virtual environment in test/clients/.venv with requirements.txt, or name its interpreter in TOLLGATE_PYTHON",
);

describe.skipIf(absent)("Python client, responses", () => {
  test("every call does what the JavaScript client's does, sync and async", async () => {
    await using stack = await Stack.start();
    const { api_key } = await stack.gateway.account();
    const program = join(import.meta.dir, "openai_responses_python.py");
    const child = Bun.spawn([python, program, `${stack.gateway.url}/v1`, api_key], {
      stdin: "ignore",
      stdout: "pipe",
      stderr: "inherit",
    });
    const lines = (await new Response(child.stdout).text()).trim().split("\n");
    expect(await child.exited).toBe(0);
    const cases = lines.map((line) => JSON.parse(line) as { case: string; error: string | null });
    expect(cases.filter(({ error }) => error !== null)).toEqual([]);
    expect(cases).toHaveLength(12);
    await stack.gateway.expectNothingReserved();
  }, 120_000);
});
