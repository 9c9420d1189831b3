// Completion: what `tollgate complete` gives, and that each shell asks for it and shows it.
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { candidates } from "../../src/commands/complete.ts";
import { listed } from "../../src/commands/commands.ts";
import { runToEnd } from "../fixtures/children.ts";
import { missing } from "../fixtures/optional.ts";
import { run, temporaryFolder, tollgate } from "./program.ts";

setDefaultTimeout(120_000); // processes are started, and the machine may be busy

const commands = (await listed()).flatMap(([, each]) => each);
const wordsFor = async (line: string, environment = {}): Promise<string[]> =>
  (await candidates(line.split(" "), commands, environment)).map((each) => each.split("\t")[0]!);

describe("what may come next", () => {
  test.each([
    ["acc", ["accounts"]],
    ["accounts cr", ["create", "credit"]],
    ["nodes ", ["drain", "resume"]],
    ["search i", ["index"]],
    ["help keys ", ["create", "list", "rename", "limits", "revoke", "rotate"]],
    ["help con", ["config"]],
    ["keys limits --limit", ["--limit-day", "--limit-month", "--limit-end-user-day"]],
    ["keys limits a@b.c 2 --limit-day 5 --limit-d", []],
    ["serve --node http://a --nod", ["--node"]],
    ["accounts plan a@b.c ", ["free", "plus", "standard", "pro"]],
    ["accounts create a@b.c --credit 5 --plan p", ["plus", "pro"]],
    ["accounts plan ", []],
    ["accounts plan a@b.c free ", []],
    ["completion ", ["bash", "zsh", "fish"]],
    ["backup ", [":files"]],
    ["backup --data ", [":folders"]],
    ["backup --data x ", [":files"]],
    ["nonsense ", []],
  ])("after %j", async (line, expected) => {
    expect(await wordsFor(line)).toEqual(expected);
  });

  test("names of the configuration", async () => {
    using folder = temporaryFolder();
    const config = join(folder.path, "gate.toml");
    const node = (name: string) => `[[nodes]]\nname = "${name}"\nurl = "http://127.0.0.1:9/v1"\n`;
    writeFileSync(config, `${node("gpu-1")}${node("gpu-2")}[[plans]]\nid = "team"\n`);
    expect(await wordsFor("nodes drain ", { TOLLGATE_CONFIG: config })).toEqual(["gpu-1", "gpu-2"]);
    expect(await wordsFor(`accounts plan --config ${config} a@b.c `)).toEqual(["team"]);
    writeFileSync(config, "nonsense");
    expect(await wordsFor("nodes drain ", { TOLLGATE_CONFIG: config })).toEqual([]);
  });
});

describe("the shells", () => {
  const shells: readonly (readonly [shell: string, script: string])[] = [
    [
      "bash",
      `source <(tollgate completion bash)
       ask() { COMP_WORDS=("$@"); COMP_CWORD=$(($#-1)); _tollgate; echo "\${COMPREPLY[@]}"; }
       compopt() { echo "compopt $*"; }
       ask tollgate accounts cr; ask tollgate accounts plan a@b.c ""; ask tollgate backup ""`,
    ],
    [
      "zsh",
      `compdef() { :; }; _files() { print "files $*"; }; _describe() { print -- "\${(@P)2%%:*}"; }
       source <(tollgate completion zsh)
       ask() { words=("$@"); CURRENT=$#; _tollgate; }
       ask tollgate accounts cr; ask tollgate accounts plan a@b.c ""; ask tollgate backup ""`,
    ],
    [
      "fish",
      `tollgate completion fish | source
       for line in "tollgate accounts cr" "tollgate accounts plan a@b.c "
         echo (complete -C $line | string replace -r '\\t.*' '')
       end
       complete -C "tollgate backup "`,
    ],
  ];

  for (const [shell, script] of shells) {
    const cannot = missing(shell, Bun.which(shell) !== null, "install it", false);
    test.skipIf(cannot)(`${shell} asks for it and shows it`, async () => {
      using folder = temporaryFolder();
      const program = join(folder.path, "tollgate");
      writeFileSync(program, `#!/bin/sh\nexec ${tollgate.map((word) => `'${word}'`).join(" ")} "$@"\n`);
      chmodSync(program, 0o755);
      const env = { PATH: [folder.path, process.env["PATH"]].join(delimiter), HOME: folder.path };
      const { stdout, stderr } = await runToEnd([shell, "-c", script], { cwd: folder.path, env });
      const [verbs = "", plans = "", files = ""] = stdout.trim().split("\n");
      expect([verbs.split(" "), plans.split(" ").sort(), stderr]).toEqual([
        ["create", "credit"],
        ["free", "plus", "pro", "standard"],
        "",
      ]);
      expect(files).toMatch(/^(compopt -o default|files ?|tollgate)$/);
    });
  }

  test("another shell is refused", async () => {
    expect(await run(["completion", "csh"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("bash, zsh, fish"),
    });
  });
});
