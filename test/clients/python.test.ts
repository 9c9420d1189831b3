// The official Python clients in each dialect, sync and async, and their types. TOLLGATE_PYTHON names the interpreter of a virtual
// environment that has requirements.txt installed.
import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { runToEnd } from "../fixtures/children.ts";
import { missing } from "../fixtures/optional.ts";
import { useStack } from "../fixtures/stack.ts";

type Case = { case: string; error: string | null };
type Abort = { aborted: "sync" | "async"; at: number };

const python = process.env["TOLLGATE_PYTHON"] ?? join(import.meta.dir, ".venv/bin/python");
const has = (module: string): boolean =>
  existsSync(python) && Bun.spawnSync([python, "-c", `import ${module}`]).exitCode === 0;
const remedy =
  "make a virtual environment in test/clients/.venv with requirements.txt, or name its interpreter in TOLLGATE_PYTHON";

describe.each([
  ["openai", "openai_python.py", "/v1", 28],
  ["openai", "openai_responses_python.py", "/v1", 16],
  ["anthropic", "anthropic_python.py", "", 36],
  ["openai, anthropic", "strict_python.py", "", 14],
] as const)("the Python client %s, %s", (module, program, path, count) => {
  const absent = missing(`the Python client ${module}`, has(module), remedy);
  const stack = useStack();

  test.skipIf(absent)("every call does what the JavaScript client's does, sync and async", async () => {
    const [rich, poor] = [await stack.gateway.account(), await stack.gateway.account(0)];
    const aborts = { sync: stack.node.marker("endless"), async: stack.node.marker("endless") };
    const markers = { "endless/sync": aborts.sync, "endless/async": aborts.async };
    const command = [python, join(import.meta.dir, program), `${stack.gateway.url}${path}`];
    const stdin = JSON.stringify({ key: rich.api_key, poor_key: poor.api_key, markers });
    const { code, stdout, stderr } = await runToEnd(command, { stdin });
    expect({ code, stderr }).toMatchObject({ code: 0 });
    const lines = stdout.trim().split("\n");
    const reports = lines.map((line) => JSON.parse(line) as Case | Abort);
    const cases = reports.filter((report) => "case" in report);
    expect(cases.filter(({ error }) => error !== null)).toEqual([]);
    expect(cases).toHaveLength(count);
    const aborted = reports.filter((report) => "aborted" in report);
    for (const { aborted: kind, at } of aborted) {
      // milliseconds, where nothing else runs
      expect((await stack.node.closedAt(aborts[kind])) - at).toBeLessThan(5_000);
    }
    await stack.gateway.expectNothingReserved();
    const charged = await stack.gateway.usage(rich.email);
    expect(charged.filter(({ estimated }) => estimated)).toHaveLength(aborted.length);
  });
});
