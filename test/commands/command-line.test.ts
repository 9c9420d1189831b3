// The command line itself: help, unknown commands and flags, exit codes, and `check`.
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { version } from "../../package.json" with { type: "json" };
import { systemClock } from "../../src/core/clock.ts";
import { sections } from "../../src/commands/commands.ts";
import { helpText, pageOf } from "../../src/commands/help.ts";
import { nearest } from "../../src/core/nearest.ts";
import { formatPairs, formatTable } from "../../src/office/table.ts";
import { startDemoNode } from "../../src/nodes/demo/demo.ts";
import { run, temporaryFolder } from "./program.ts";

setDefaultTimeout(120_000); // processes are started, and the machine may be busy

describe("the command line", () => {
  const commands = async () => (await sections()).flatMap(([, each]) => each);

  test.each([["help"], ["--help"], []])("gives help for %j", async (...words) => {
    expect(await run(words.filter(Boolean))).toEqual({ code: 0, stdout: helpText(await sections()), stderr: "" });
  });

  test.each(["help accounts plan", "accounts plan --help", "accounts plan a@b.c -h"])(
    "gives a command's own help for %s",
    async (words) => {
      const { code, stdout, stderr } = await run(words.split(" "));
      expect([code, stderr]).toEqual([0, ""]);
      expect(stdout).toBe(
        `Usage: tollgate accounts plan EMAIL PLAN [--config FILE] [--data DIR] [--json]

Change the plan of an account.

  EMAIL          The account's e-mail address.
  PLAN           The new plan.
  --config FILE  The configuration file.
  --data DIR     The data folder.
  --json         Print JSON for programs.`,
      );
    },
  );

  test("tells its version", async () => {
    expect(await run(["--version"])).toEqual({ code: 0, stdout: version, stderr: "" });
  });

  test("lists every command in its help, and has a page for each that names its words and flags", async () => {
    const help = helpText(await sections());
    for (const command of await commands()) {
      expect(help).toContain(["tollgate", command.name, ...command.words.map(({ name }) => name)].join(" "));
      const page = pageOf(command);
      for (const { name, help } of command.words) expect([command.name, name, help]).not.toContain("");
      for (const flag of Object.keys(command.flags)) expect(page).toContain(`--${flag}`);
      expect(page).not.toMatch(/undefined|.{101}/);
    }
  });

  test("knows which commands lack which of the usual flags, and names every variable", async () => {
    const all = await commands();
    const lacking = (...usual: string[]) =>
      all.filter(({ flags }) => usual.some((flag) => !(flag in flags))).map(({ name }) => name);
    expect(lacking("data", "config")).toEqual([
      "login",
      "logout",
      "help",
      "completion",
      "check-answers",
      "pdf-text",
      "complete",
    ]);
    expect(lacking("json").filter((name) => !lacking("data").includes(name))).toEqual(["init", "serve"]);
    const source = readFileSync(join(import.meta.dir, "../../src/config/config.ts"), "utf8");
    const help = helpText(await sections());
    for (const [variable] of source.matchAll(/TOLLGATE_[A-Z_]+/g)) expect(help).toContain(variable);
  });

  const wrong: [string[], string][] = [
    [["acounts", "list"], 'there is no command "acounts"; commands: init, serve, accounts create, accounts invite'],
    [["accounts", "creat"], 'there is no command "accounts creat"; did you mean "accounts create"?'],
    [["serv"], 'there is no command "serv"; did you mean "serve"?'],
    [["accounts", "list", "--dta", "x"], "accounts list: unknown flag --dta; did you mean --data?"],
    [["accounts", "show"], "accounts show: EMAIL is missing"],
    [["accounts", "credit", "a@b.example", "-50"], "accounts credit: -50 is below zero, which no number here may be"],
    [["simulate", "--nodes", "-1", "extra"], 'simulate: "extra" is one word too many'],
    [["accounts", "show", "a", "b"], 'accounts show: "b" is one word too many'],
    [["accounts", "credit", "a@b.c", "1.5"], 'TOKENS must be a whole number >= 1, is "1.5"'],
    [["accounts", "create", "a@b.c", "--password", "short"], "--password must have 8 to 1024 characters, has 5"],
    [["serve", "--port", "99999"], "--port must be a whole number from 0 to 65535, is "],
    [["serve", "--threads", "0"], "--threads must be "],
    [["serve", "--node", "ftp://x"], "--node must be an http:// or https:// address"],
    [["serve", "--port"], "serve: Option '--port <value>' argument missing"],
  ];
  test.each(wrong)("ends with 2 for %j", async (words, message) => {
    const { code, stdout, stderr } = await run(words);
    expect(stderr).toStartWith(`tollgate: ${message}`);
    expect(stderr).toEndWith("\nSee: tollgate help");
    expect([code, stdout]).toEqual([2, ""]);
  });
});

describe("check", () => {
  test("asks each node and ends with 1 when one is wrong", async () => {
    using folder = temporaryFolder();
    const node = startDemoNode({ models: [{ id: "core-3", contextTokens: 1 }], clock: systemClock });
    const other = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("no", { status: 401 }) });
    const file = join(folder.path, "gate.toml");
    const table = (name: string, url: string, model: string) =>
      `[[nodes]]\nname = "${name}"\nurl = "${url}"\n[nodes.models]\n"core-3" = "${model}"\n`;
    writeFileSync(file, table("good", node.url, "core-3"));
    expect(await run(["check", "--config", file])).toMatchObject({ code: 0, stderr: "" });

    const gone = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
    gone.stop(true);
    writeFileSync(
      file,
      table("good", node.url, "core-3") +
        table("misnamed", node.url, "qwen") +
        table("locked", `${other.url}v1`, "x") +
        table("gone", `http://127.0.0.1:${gone.port}/v1`, "x"),
    );
    const { code, stdout } = await run(["check", "--config", file]);
    expect(code).toBe(1);
    const lines = stdout.split("\n").filter((line) => line.startsWith("node "));
    expect(lines).toEqual([
      `node good  ok  demo at ${node.url}`,
      `node misnamed  warning  demo at ${node.url}: does not list qwen, but core-3`,
      `node locked  WRONG  ${other.url}v1: it wants an API key (status 401): give it one with api_key_env in [[nodes]] of the configuration`,
      `node gone  WRONG  http://127.0.0.1:${gone.port}/v1: it cannot be reached: nothing listens at its address`,
    ]);
    const asJson = await run(["check", "--config", file, "--json"]);
    expect(JSON.parse(asJson.stdout)).toMatchObject({ ok: false, models: 21, nodes: [{ name: "good" }, {}, {}, {}] });
    const asked = await run(["nodes", "--config", file, "--data", join(folder.path, "none"), "--json"]);
    expect(JSON.parse(asked.stdout).map(({ health }: { health: string }) => health)).toEqual([
      "well",
      "well",
      "down",
      "down",
    ]);
    await Promise.all([node.stop(), other.stop()]);
  });

  test("finds no fault in nodes that serve different models, but in a model without a node", async () => {
    using folder = temporaryFolder();
    const file = join(folder.path, "gate.toml");
    const node = (name: string) => {
      const data = [{ id: name, object: "model", owned_by: "vllm" }];
      return Bun.serve({ port: 0, fetch: () => Response.json({ object: "list", data }) });
    };
    await using qwen = node("qwen");
    await using llama = node("llama");
    const tables = [qwen, llama].map(({ url }, at) => `[[nodes]]\nname = "box-${at}"\nurl = "${url}v1"\n`).join("");
    const check = async (...models: string[]) => {
      writeFileSync(file, tables + models.map((id) => `[[models]]\nid = "${id}"\n`).join(""));
      return run(["check", "--config", file]);
    };
    const both = await check("qwen", "llama");
    expect([both.code, both.stdout]).toEqual([0, expect.not.stringMatching(/WRONG|warning/)]);
    const useless = await check("qwen");
    expect(useless.code).toBe(0);
    expect(useless.stdout).toMatch(/^node box-1 {2}warning .*: lists llama, none of yours$/m);
    const lacking = await check("qwen", "llama", "gone");
    expect(lacking.code).toBe(1);
    expect(lacking.stdout).toMatch(/^models +WRONG {2}No node answers gone: no node lists gone$/m);
    expect(lacking.stdout).not.toMatch(/^node .*(WRONG|warning)/m);
    const report = await run(["doctor", "--config", file, "--data", join(folder.path, "none")]);
    expect(report.code).toBe(1);
    expect(report.stdout).toMatch(/^PROBLEM +model gone +no node lists gone$/m);
    expect(report.stdout).toMatch(/^ok +node box-0 +vllm, 64 slots$/m);
  });
});

describe("text for people", () => {
  test("stands in columns, numbers to the right", () => {
    expect(
      formatTable(
        ["name", "tokens"],
        [
          ["a", 1234567],
          ["long name", 5],
        ],
      ),
    ).toBe(["name          tokens", "a          1,234,567", "long name          5"].join("\n"));
    expect(
      formatPairs([
        ["a", true],
        ["long", null],
      ]),
    ).toBe("a     yes\nlong  -");
  });

  test("knows what was meant", () => {
    expect(nearest("prot", ["host", "port"])).toBe("port");
    expect(nearest("max_wait_second", ["max_wait_seconds"])).toBe("max_wait_seconds");
    expect(nearest("xyz", ["host", "port"])).toBeNull();
    expect(nearest("", ["host"])).toBeNull();
  });
});
