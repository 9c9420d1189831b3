// Responses over a WebSocket with the official clients' own calls, each as its language's program.
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
const remedy = "install test/clients/requirements.txt, or run test/clients/accumulators/install";
const stack = useStack();

const { continued, refused, streams, ...steering } = {
  continued: ["Hi there!", true],
  refused: "previous_response_not_found",
  streams: ["completed", "completed"],
  steered: true,
  successor: true,
};
const whole = { continued, refused, streams, ...steering };
const java = [`${join(built, "java")}:${join(built, "java/*")}`, "Sockets"];

test.each([
  ["openai-node", ["node", join(folder, "responses.mjs")], true, whole, 6],
  ["openai-python", [python, join(folder, "responses.py")], hasSockets, { ...whole, async: "Hi there!" }, 7],
  ["openai-go", [join(built, "sockets-go")], existsSync(join(built, "sockets-go")), { continued, refused, streams }, 4],
  ["openai-java", ["java", "-cp", ...java], existsSync(join(built, "java/Sockets.class")), { continued, refused }, 2],
] as const)("%s", async (name, words, isThere, expected, charges) => {
  if (missing(name, isThere, remedy, false)) return;
  const { api_key, email } = await stack.gateway.account();
  const { code, stdout, stderr } = await runToEnd([...words, `${stack.gateway.url}/v1`], {
    env: { ...process.env, KEY: api_key },
  });
  expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
  expect(JSON.parse(stdout)).toEqual(expected);
  expect(await stack.gateway.usage(email)).toHaveLength(charges);
});
