// Responses over a WebSocket with the official clients' own calls. Python's needs the environment of python.test.ts.
import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { runToEnd } from "../fixtures/children.ts";
import { missing } from "../fixtures/optional.ts";
import { useStack } from "../fixtures/stack.ts";

const folder = join(import.meta.dir, "sockets");
const built = join(import.meta.dir, "accumulators/.built");
const python = process.env["TOLLGATE_PYTHON"] ?? join(import.meta.dir, ".venv/bin/python");
const hasSockets = existsSync(python) && Bun.spawnSync([python, "-c", "import openai, websockets"]).exitCode === 0;
const stack = useStack();

const common = {
  continued: ["Hi there!", true],
  streams: ["completed", "completed"],
  steered: true,
  successor: true,
  refused: "previous_response_not_found",
};

test.each([
  ["openai-node", ["node", join(folder, "responses.mjs")], true, common, 6],
  ["openai-python", [python, join(folder, "responses.py")], hasSockets, { ...common, async: "Hi there!" }, 7],
] as const)("%s", async (name, words, isThere, expected, charges) => {
  if (missing(name, isThere, "install test/clients/requirements.txt, or run test/clients/accumulators/install", false))
    return;
  const { api_key, email } = await stack.gateway.account();
  const { code, stdout, stderr } = await runToEnd([...words, `${stack.gateway.url}/v1`], {
    env: { ...process.env, KEY: api_key },
  });
  expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
  expect(JSON.parse(stdout)).toEqual(expected);
  expect(await stack.gateway.usage(email)).toHaveLength(charges);
});
void built;
