// The configuration file, changed on a running gateway by commands and by the operators' API: applied at once, undone, never
// lost to whoever edits it by hand, and without its secrets.
import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ConfigEdited, ConfigShown } from "../../src/office/config-editing.ts";
import { GatewayProcess } from "../fixtures/gateway-process.ts";
import { runToEnd } from "../fixtures/children.ts";

setDefaultTimeout(60_000);

const written = `# the shop
[[nodes]]
name = "gpu-1" # under the desk
url = "http://127.0.0.1:9/v1"
api_key = "sk-very-secret"

[[models]]
id = "qwen3"

[[plans]]
id = "team" # all of us
unlimited = true
`;
const gateway = await GatewayProcess.start({ config: written, env: { TOLLGATE_LOG_LEVEL: "info" } });
afterAll(() => gateway[Symbol.asyncDispose]());
const file = join(gateway.folder, "tollgate.toml");
const text = (): string => readFileSync(file, "utf8");
const show = () => gateway.cli<ConfigShown>("config", "show");
const edit = (...words: string[]) => gateway.cli<ConfigEdited>("config", "edit", ...words);
const failed = (asked: Promise<unknown>): Promise<string> =>
  asked.then(
    () => "it was done",
    (error: Error) => error.message,
  );

test("a change is rehearsed, applied and undone, byte for byte; comments stay, and the audit log says who and what", async () => {
  const before = await show();
  expect(JSON.stringify(before)).not.toContain("sk-very");
  expect(before.tables.find(({ name }) => name === "log")!.keys.find(({ name }) => name === "level")!.fixed).toBe(
    "TOLLGATE_LOG_LEVEL wins over the file",
  );
  const rehearsed = await edit("--set", "nodes.gpu-1.slots=3", "--add", "models.other", "--dry-run");
  expect([text(), rehearsed.applied]).toEqual([written, ["nodes", "models"]]);
  expect(rehearsed.warnings.join("\n")).toContain("node gpu-1: http://127.0.0.1:9/v1: it cannot be reached");

  await edit("--set", "nodes.gpu-1.slots=3", "--set", "plans.team.priority_max=interactive");
  expect(text()).toBe(
    written
      .replace('secret"\n', 'secret"\nslots = 3\n')
      .replace("unlimited = true\n", 'unlimited = true\npriority_max = "interactive"\n'),
  );
  expect(await gateway.cli("nodes")).toMatchObject([{ name: "gpu-1", slots: 3 }]);
  await edit("--set", "nodes.gpu-1.api_key=sk-other", "--remove", "models.qwen3", "--add", "models.qwen4");
  const models = await gateway.cli<{ served: { id: string }[] }>("models");
  expect(models.served.map(({ id }) => id)).toEqual(["qwen4"]);
  const shown = await show();
  expect(JSON.stringify(shown)).not.toMatch(/sk-/);
  expect([shown.can_undo, shown.changes[0]?.what]).toEqual([
    true,
    ["+ models.qwen4", "nodes.gpu-1.api_key changed", "- models.qwen3"],
  ]);
  await gateway.cli("config", "undo");
  await gateway.cli("config", "undo");
  expect(text()).toBe(written);
  expect(await gateway.cli("nodes")).not.toMatchObject([{ slots: 3 }]);
  expect(await failed(gateway.cli("config", "undo"))).toContain("nothing was changed here that could be undone");
});

test("what a start would refuse is refused with its line, and nothing is written", async () => {
  for (const [words, why] of [
    [["--set", "nodes.gpu-1.slots=-4"], 'nodes[0].slots must be a whole number from 1 to 100000, or "auto"'],
    [["--remove", "nodes.gpu-1", "--set", 'models.qwen3.fallback=["none"]'], "must be a name of another of [[models]]"],
    [["--add", "nodes.gpu-2"], "nodes[1].url is missing"],
    [
      ["--set", 'nodes.gpu-1.command=["no-such-program", "{port}"]', "--set", "nodes.gpu-1.url="],
      "there is no program",
    ],
  ] as const) {
    expect(await failed(edit(...words))).toContain(why);
    expect(text()).toBe(written);
  }
});

test("two operators at once: one is told what the other did; who edits by hand is not overwritten", async () => {
  const { token } = await gateway.cli<{ token: string }>("tokens", "create", "--name", "deploy", "--scope", "all");
  const post = async (path: string, body: object) => {
    const init = { method: "POST", headers: { authorization: `Bearer ${token}` }, body: JSON.stringify(body) };
    const reply = await fetch(`${gateway.url}/api/v1/config/${path}`, init);
    return { status: reply.status, body: JSON.stringify(await reply.json()) };
  };
  const { hash } = await show();
  const both = await Promise.all([5, 6].map((slots) => post("edit", { hash, set: [`nodes.gpu-1.slots=${slots}`] })));
  expect(both.map(({ status }) => status).sort()).toEqual([200, 409]);
  const told = both.find(({ status }) => status === 409)!.body;
  expect(told).toMatch(/token deploy changed it \(nodes.gpu-1.slots from nothing to [56]\)/);

  const far = ["nodes.gpu-1.url=http://evil.example.org", 'nodes.gpu-1.api_key_env="PATH"', "server.port=1"];
  for (const set of far) expect((await post("edit", { set: [set] })).status).toBe(400);

  const theirs = text().replace("# the shop", "# our shop");
  writeFileSync(file, theirs);
  expect(await post("undo", {})).toMatchObject({ status: 409, body: expect.stringContaining("was edited since") });
  expect(await post("edit", { hash, set: ["nodes.gpu-1.slots=7"] })).toMatchObject({
    status: 409,
    body: expect.stringContaining("somebody edited it"),
  });
  expect([text(), (await show()).can_undo]).toEqual([theirs, false]);
  writeFileSync(file, written);
  await gateway.reload();

  const read = await gateway.cli<{ token: string }>("tokens", "create", "--name", "look", "--scope", "people");
  const init = { method: "POST", headers: { authorization: `Bearer ${read.token}` }, body: "{}" };
  expect((await fetch(`${gateway.url}/api/v1/config/edit`, init)).status).toBe(403);
});

test("the file keeps its rights, its versions are the owner's alone and bounded, and survive kill -9", async () => {
  chmodSync(file, 0o640);
  for (let at = 1; at <= 22; at++) await edit("--set", `nodes.gpu-1.slots=${at}`);
  expect(statSync(file).mode & 0o777).toBe(0o640);
  expect(statSync(join(gateway.dataFolder, "config-versions.json")).mode & 0o777).toBe(0o600);
  await gateway.kill("SIGKILL");
  await gateway.restart();
  expect((await show()).changes).toHaveLength(20);
  await gateway.cli("config", "undo");
  expect(text()).toContain("slots = 21\n");
});

test("comments that are not in UTF-8 and a draft beside the file stay as they are", async () => {
  const [before, draft] = [readFileSync(file), `${file}.new`];
  writeFileSync(draft, "mine");
  writeFileSync(file, Buffer.concat([before, Buffer.from("# gr\xfcn\n", "latin1")]));
  expect(await failed(edit("--set", "nodes.gpu-1.slots=9"))).toContain("is not in UTF-8");
  expect(readFileSync(file).includes(0xfc)).toBe(true);
  writeFileSync(file, before);
  await edit("--set", "nodes.gpu-1.slots=9");
  expect(text()).toContain("slots = 9");
  expect(readFileSync(draft, "utf8")).toBe("mine");
  await gateway.cli("config", "undo");
});

test("a file that is gone or no file says so", async () => {
  await using other = await GatewayProcess.start({ config: "" });
  const options = { cwd: other.folder };
  const shown = await other.cli<ConfigShown>("config", "show");
  expect(shown.problem).toBeNull();
  await runToEnd(["rm", join(other.folder, "tollgate.toml")], options);
  expect((await other.cli<ConfigShown>("config", "show")).problem).toContain("is changed where it is made");
  expect(await failed(other.cli("config", "edit", "--set", "log.level=debug"))).toContain("ENOENT");
});
