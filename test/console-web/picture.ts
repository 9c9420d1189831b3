// Makes the picture of the README anew: the overview of an account that was used today. `npm run picture`
import { join } from "node:path";
import { Stack } from "../fixtures/stack.ts";
import { launch, Visit } from "./browser.ts";

const password = "correct horse battery";
const models = ["qwen3-235b", "qwen3-coder-30b", "gemma-3-27b", "qwen3-235b", "glm-4.6-air"];
const rows = [...new Set(models)].map((id, at) => `[[models]]\nid = "${id}"\nprice = ${(at + 1) / 4}`);
const plan = '[[plans]]\nid = "standard"\nname = "Standard"\ntokens_per_day = 265000\nsearches_per_day = 50';

await using stack = await Stack.start({ config: [...rows, plan].join("\n"), slots: 8 });
const { gateway } = stack;
const email = "ada@example.com";
type Made = Readonly<{ api_key: string }>;
const made = await gateway.cli<Made>("accounts", "create", email, "--password", password, "--credit", "2000000");
for (let at = 0; at < 40; at++) {
  const model = models[at % models.length]!;
  const content = "A question of some length, as people ask them. ".repeat(1 + (at % 7));
  const [path, body] =
    at % 3 === 0
      ? (["/v1/responses", { model, input: content }] as const)
      : (["/v1/chat/completions", { model, messages: [{ role: "user", content }] }] as const);
  const headers = { authorization: `Bearer ${made.api_key}`, "content-type": "application/json" };
  const reply = await fetch(gateway.url + path, { method: "POST", headers, body: JSON.stringify(body) });
  if (!reply.ok) throw new Error(`${path} was answered with ${reply.status}: ${await reply.text()}`);
  await reply.text();
}
const browser = await launch();
const visit = await Visit.open(browser, gateway.url, { colorScheme: "light" });
await visit.signIn(email, password);
await visit.page.locator("tbody tr").first().waitFor();
await visit.page.screenshot({ path: join(import.meta.dir, "../../src/console/screenshots/overview-light.png") });
await browser.close();
