// The command line itself: help, unknown commands and flags, exit codes, and `check`.
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { version } from "../../package.json" with { type: "json" };
import { systemClock } from "../../src/core/clock.ts";
import type { Command } from "../../src/commands/command.ts";
import { helpText } from "../../src/commands/help.ts";
import { formatPairs, formatTable } from "../../src/commands/table.ts";
import { nearest } from "../../src/core/nearest.ts";
import { startDemoNode } from "../../src/nodes/demo/demo.ts";
import { run, temporaryFolder } from "./program.ts";

setDefaultTimeout(120_000); // processes are started, and the machine may be busy

describe("the command line", () => {
  test.each([["help"], ["--help"], ["serve", "--help"], []])("gives help for %j", async (...words) => {
    expect(await run(words.filter(Boolean))).toEqual({ code: 0, stdout: helpText, stderr: "" });
  });

  test("tells its version", async () => {
    expect(await run(["--version"])).toEqual({ code: 0, stdout: version, stderr: "" });
  });

  test("has help for every command that there is", () => {
    const folder = join(import.meta.dir, "../../src/commands");
    const usages = readdirSync(folder)
      .map((name) => /^\/\/ (tollgate [a-z]+(?: [a-z]+)?)/.exec(readFileSync(join(folder, name), "utf8"))?.[1])
      .filter((usage) => usage !== undefined);
    expect(usages.length).toBeGreaterThan(20);
    for (const usage of usages) expect(helpText).toContain(usage);
  });

  test("says in its help which commands lack which of the usual flags, and names every variable", async () => {
    const folder = join(import.meta.dir, "../../src/commands");
    const lacking: string[] = [];
    for (const name of readdirSync(folder)) {
      const command = /^\/\/ tollgate ([a-z-]+(?: [a-z]+)?):/.exec(readFileSync(join(folder, name), "utf8"))?.[1];
      if (command === undefined || command.startsWith("help")) continue;
      const { default: made } = (await import(join(folder, name))) as { default?: Command };
      if (made === undefined) continue;
      lacking.push(...["data", "config", "json"].filter((flag) => !(flag in made.flags)).map((f) => `${command} ${f}`));
    }
    const none = ["check-answers", "pdf-text"].flatMap((each) => ["data", "config", "json"].map((f) => `${each} ${f}`));
    expect(lacking.sort()).toEqual([...none, "serve json"].sort());
    expect(helpText).toContain("serve has no --json, check-answers and pdf-text have no flags at all");
    const source = readFileSync(join(folder, "../config/config.ts"), "utf8");
    for (const [variable] of source.matchAll(/TOLLGATE_[A-Z_]+/g)) expect(helpText).toContain(variable);
  });

  const wrong: [string[], string][] = [
    [["acounts", "list"], 'there is no command "acounts"; commands: serve, accounts create, accounts invite'],
    [["accounts", "creat"], 'there is no command "accounts creat"; did you mean "accounts create"?'],
    [["serv"], 'there is no command "serv"; did you mean "serve"?'],
    [["accounts", "list", "--dta", "x"], "accounts list: unknown flag --dta; did you mean --data?"],
    [["accounts", "show"], "accounts show: EMAIL is missing"],
    [["accounts", "credit", "a@b.example", "-50"], "accounts credit: -50 is below zero, which no number here may be"],
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
