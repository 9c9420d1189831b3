// The official Python client, sync and async. TOLLGATE_PYTHON names the interpreter of a virtual environment that has
// requirements.txt installed.
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

describe.skipIf(absent)("Python client", () => {
  test("every call does what the JavaScript client's does, sync and async", async () => {
    await using stack = await Stack.start();
    const [rich, poor] = [await stack.gateway.account(), await stack.gateway.account(0)];
    const abortMarkers = { sync: stack.node.marker("endless"), async: stack.node.marker("endless") };
    const child = Bun.spawn([python, join(import.meta.dir, "openai_python.py"), `${stack.gateway.url}/v1`], {
      stdin: new Blob([
        JSON.stringify({
          key: rich.api_key,
          poor_key: poor.api_key,
          markers: { "endless/sync": abortMarkers.sync, "endless/async": abortMarkers.async },
        }),
      ]),
      stdout: "pipe",
      stderr: "inherit",
    });
    const lines = (await new Response(child.stdout).text()).trim().split("\n");
    expect(await child.exited).toBe(0);
    const reports = lines.map((line) => JSON.parse(line) as Report);
    const cases = reports.filter((report): report is Case => "case" in report);
    expect(cases.filter(({ error }) => error !== null)).toEqual([]);
    expect(cases).toHaveLength(26);
    for (const { aborted, at } of reports.filter((report): report is Abort => "aborted" in report)) {
      expect((await stack.node.closedAt(abortMarkers[aborted])) - at).toBeLessThan(1_000);
    }
    await stack.gateway.expectNothingReserved();
  }, 120_000);
});

type Case = { case: string; error: string | null };
type Abort = { aborted: "sync" | "async"; at: number };
type Report = Case | Abort;
