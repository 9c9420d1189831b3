// Schemathesis makes valid and broken requests from /openapi.json and sends them to the real server: every status,
// content type and body must be in the description, and the server must never fail.
import { expect, setDefaultTimeout, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { embeddedCatalog } from "../../src/core/catalog.ts";
import { systemClock } from "../../src/core/clock.ts";
import { startDemoNode } from "../../src/nodes/demo/demo.ts";
import { runToEnd } from "../fixtures/children.ts";
import { GatewayProcess } from "../fixtures/gateway-process.ts";
import { missing } from "../fixtures/optional.ts";
import { seedOfRun } from "../fixtures/random.ts";

setDefaultTimeout(30 * 60_000);
const childTimeLimitMs = 29 * 60_000;

const program = process.env["TOLLGATE_SCHEMATHESIS"] ?? join(import.meta.dir, ".venv/bin/schemathesis");
const examples = process.env["TOLLGATE_SCHEMATHESIS_EXAMPLES"] ?? "5";
const seed = seedOfRun();
/** Flood protection lets each of them send 120 requests a minute. */
const accounts = 40;

test.skipIf(
  missing(
    "schemathesis",
    existsSync(program),
    "make test/docs/.venv with requirements.txt, or name it in TOLLGATE_SCHEMATHESIS",
  ),
)("the server answers as its description says, whatever is sent", async () => {
  const models = [...embeddedCatalog().models.values()];
  const node = startDemoNode({ models, clock: systemClock, tokensPerSecond: Infinity });
  await using gateway = await GatewayProcess.start({ config: `[[nodes]]\nname = "demo"\nurl = "${node.url}"\n` });
  const keys: string[] = [];
  for (let number = 0; number < accounts; number++) {
    keys.push((await gateway.account(100_000_000, "pro")).api_key);
  }
  const store = async (path: string, body: object): Promise<string> => {
    const headers = { authorization: `Bearer ${keys[0]}` };
    const reply = await fetch(gateway.url + path, { method: "POST", headers, body: JSON.stringify(body) });
    return ((await reply.json()) as { id: string }).id;
  };
  const upload = async (): Promise<string> => {
    const line = {
      custom_id: "one",
      method: "POST",
      url: "/v1/responses",
      body: { model: "core-3", input: "Keep this" },
    };
    const body = new FormData();
    body.append("purpose", "batch");
    body.append("file", new Blob([JSON.stringify(line)]), "in.jsonl");
    const headers = { authorization: `Bearer ${keys[0]}` };
    return (
      (await (await fetch(`${gateway.url}/v1/files`, { method: "POST", headers, body })).json()) as { id: string }
    ).id;
  };
  const words = [
    "run",
    `${gateway.url}/openapi.json`,
    ...["--checks", "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"],
    ...["--max-examples", examples, "--phases", "examples,coverage,fuzzing", "--seed", String(seed)],
    ...["--workers", "1", "--no-shrink", "--suppress-health-check", "all", "--no-color", "--continue-on-failure"],
    "--generation-database=none",
  ];
  console.log(`schemathesis: ${examples} examples of each operation, seed ${seed}`);
  const { code, stdout, stderr } = await runToEnd([program, ...words], {
    timeLimitMs: childTimeLimitMs,
    cwd: gateway.folder,
    env: {
      PATH: process.env["PATH"],
      HOME: gateway.folder,
      SCHEMATHESIS_HOOKS: "schemathesis_hooks",
      PYTHONPATH: import.meta.dir,
      PYTHONDONTWRITEBYTECODE: "1",
      TOLLGATE_KEYS: keys.join(","),
      TOLLGATE_RESPONSE_ID: await store("/v1/responses", { model: "core-3", input: "Keep this" }),
      TOLLGATE_CONVERSATION_ID: await store("/v1/conversations", {}),
      TOLLGATE_BATCH_ID: await store("/v1/batches", {
        input_file_id: await upload(),
        endpoint: "/v1/responses",
        completion_window: "24h",
      }),
      TOLLGATE_MESSAGE_BATCH_ID: await store("/v1/messages/batches", {
        requests: [{ custom_id: "one", params: { model: "core-3", max_tokens: 9, messages: [] } }],
      }),
    },
  });
  await node.stop();
  if (code !== 0) console.log(stdout.slice(-20_000), stderr.slice(-4_000));
  console.log(/^Test cases:[\s\S]*?\n\n/m.exec(stdout)?.[0] ?? stdout.slice(-400));
  expect(code).toBe(0);
  expect(gateway.output).not.toContain("handler failed");
});
