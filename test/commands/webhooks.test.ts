// Webhooks on a real server: tried by the command and told of a used-up budget, verified with the official library; doctor
// names one that cannot be reached. Neither addresses nor secrets are said anywhere.
import { expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { Webhook } from "standardwebhooks";
import { freePort } from "../../src/http/free-port.ts";
import { eventually } from "../fixtures/eventually.ts";
import { GatewayProcess } from "../fixtures/gateway-process.ts";
import { run } from "./program.ts";

setDefaultTimeout(120_000);

const secret = `whsec_${Buffer.alloc(32, 5).toString("base64")}`;

test("notices arrive signed from a running and from a stopped server, and a target that is away is named", async () => {
  const got: { type: string; data: Record<string, unknown> }[] = [];
  using receiver = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: async (request) => {
      if (request.method !== "POST") return new Response(null, { status: 405 }); // doctor looks whether it is there
      const body = await request.text();
      got.push(new Webhook(secret).verify(body, Object.fromEntries(request.headers)) as (typeof got)[number]);
      return new Response("taken");
    },
  });
  const away = `http://127.0.0.1:${freePort("127.0.0.1")}/address-of-away`;
  const config = `[[webhooks]]
    name = "pager"
    url = "${receiver.url}address-of-pager"
    secret_env = "PAGER_SECRET"
    [[webhooks]]
    name = "away"
    url = "${away}"
    format = "slack"`;
  const variables = { PAGER_SECRET: secret };
  await using gateway = await GatewayProcess.start({ config, env: variables });
  const said: string[] = [];
  const command = async (...words: string[]) => {
    const where = ["--data", gateway.dataFolder, "--config", join(gateway.folder, "tollgate.toml")];
    const finished = await run([...words, ...where], { variables });
    said.push(finished.stdout, finished.stderr);
    return finished;
  };
  expect(await command("webhooks", "test", "pager")).toEqual({ code: 0, stdout: "pager took a notice.", stderr: "" });
  expect(got).toMatchObject([{ type: "test", data: { webhook: "pager", server: gateway.url } }]);
  const failed = await command("webhooks", "test", "away", "--json");
  expect([failed.code, JSON.parse(failed.stdout)]).toEqual([
    1,
    { name: "away", sent: false, problem: "it cannot be reached: ECONNREFUSED" },
  ]);
  expect((await command("webhooks", "test", "none")).stderr).toContain('there is no webhook "none"');

  const { email } = await gateway.account();
  const limited = await gateway.cli<{ api_key: string }>(
    ...["keys", "create", email, "--name", "bot", "--limit-day", "100"],
  );
  const ask = { model: "core-3", messages: [{ role: "user", content: "Hello" }], max_tokens: 4_096 };
  const refused = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${limited.api_key}` },
    body: JSON.stringify(ask),
  });
  expect(refused.status).toBe(429);
  await eventually("the budget is told of", async () => got.length > 1, 30_000);
  expect(got[1]).toMatchObject({ type: "key.budget_used", data: { email, key_name: "bot", limit_tokens: 100 } });
  const sent = 'tollgate_notices_total{webhook="pager",result="sent"} 1\n';
  const metrics = await eventually("what was sent is counted once its answer has come", async () => {
    const text = await (await fetch(`${gateway.url}/metrics`)).text();
    return text.includes(sent) && text;
  });
  expect(metrics).toContain('tollgate_notices_waiting{webhook="away"} 1');

  const doctor = await command("doctor");
  expect(doctor.code).toBe(1);
  expect(doctor.stdout).toMatch(/webhook away.*cannot be reached/);
  expect(doctor.stdout).toMatch(/webhook pager.*answers; json, signed, all events/);

  await gateway.kill("SIGTERM");
  expect((await command("webhooks", "test", "pager")).code).toBe(0);
  expect(got.at(-1)).toMatchObject({ type: "test" });
  const everything = [...said, gateway.output].join("\n");
  for (const hidden of ["address-of", secret, secret.slice(6)]) expect(everything).not.toContain(hidden);
});
