// What the README says is so: its reference of the configuration is the program's, its files are there, its configuration
// is taken, and its first requests work in every language whose tools are installed.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checkModelIds, readConfig } from "../src/config.ts";
import { configReference } from "../src/config-reference.ts";
import { embeddedCatalog } from "../src/catalog.ts";
import { GatewayProcess } from "./fixtures/gateway-process.ts";
import { longForm, missing } from "./fixtures/optional.ts";

setDefaultTimeout(120_000);

const root = join(import.meta.dir, "..");
const readme = readFileSync(join(root, "README.md"), "utf8");
const blocks = [...readme.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].map(([, language, text]) => ({
  language: language!,
  text: text!,
}));

test("its reference of the configuration is what the program says (tollgate help config)", () => {
  const [, written] = /<!-- configuration: .* -->\n\n([\s\S]*?)\n\n<!-- end of configuration -->/.exec(readme)!;
  expect(written).toBe(configReference());
});

/** Where a link into a Markdown text may lead. */
const anchorsOf = (text: string): string[] =>
  [...text.matchAll(/^#+ (.*)$/gm)].map(([, title]) =>
    title!
      .toLowerCase()
      .replace(/[^\w -]/g, "")
      .replaceAll(" ", "-"),
  );

test("the files and headings that it names are there", () => {
  const targets = [...readme.matchAll(/\]\(([^)]+)\)/g)].map(([, target]) => target!);
  for (const target of targets.filter((each) => !/^https?:/.test(each))) {
    const [path = "", anchor] = target.split("#");
    const file = join(root, path === "" ? "README.md" : path);
    expect([target, existsSync(file)]).toEqual([target, true]);
    if (anchor !== undefined) expect(anchorsOf(readFileSync(file, "utf8"))).toContain(anchor);
  }
});

test("its configuration is taken by the program", () => {
  const variables = { VLLM_KEY: "a", STRIPE_KEY: "b", STRIPE_WEBHOOK: "c", SCRAPE_TOKEN: "d" };
  const tables = blocks.filter(({ language, text }) => language === "toml" && !text.includes("model_providers"));
  expect(tables.length).toBeGreaterThan(2);
  for (const { text } of tables) {
    const config = readConfig("tollgate.toml", text, {}, variables);
    checkModelIds(config, embeddedCatalog());
  }
});

const clients = join(import.meta.dir, "clients");
const python = process.env["TOLLGATE_PYTHON"] ?? join(clients, ".venv/bin/python");

/** How a block is run, and whether it can be here. */
const runners: Readonly<
  Record<string, Readonly<{ absent: boolean; command: (text: string, folder: string) => string[] }>>
> = {
  sh: {
    absent: missing("curl", Bun.which("curl") !== null, "install it"),
    command: (text) => ["sh", "-euc", text],
  },
  js: {
    absent: missing(
      "the JavaScript clients",
      existsSync(join(clients, "node_modules/openai")),
      "npm ci --prefix test/clients",
    ),
    command: (text) => ["node", "--input-type=module", "-e", text],
  },
  python: {
    absent: missing("the Python clients", existsSync(python), "make test/clients/.venv with requirements.txt"),
    command: (text) => [python, "-c", text],
  },
  go: {
    absent:
      missing("Go", Bun.which("go") !== null, "install it", false) ||
      missing("a minute for Go's first compilation", longForm, "set TOLLGATE_TESTS=long", false),
    command: (text, folder) => {
      writeFileSync(join(folder, "main.go"), text);
      return ["go", "run", join(folder, "main.go")];
    },
  },
  ruby: {
    absent: missing("Ruby", Bun.which("ruby") !== null, "install it"),
    command: (text) => ["ruby", "-e", text],
  },
};

describe("its first requests", () => {
  let gateway: GatewayProcess;
  const folder = mkdtempSync(join(tmpdir(), "tollgate-readme-"));
  beforeAll(async () => {
    gateway = await GatewayProcess.start({ config: "" });
  });
  afterAll(async () => {
    await gateway[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  const [section] = /^## First requests\n[\s\S]*?(?=^## )/m.exec(readme)!;
  const requests = blocks.filter(({ text }) => section.includes(text) && text.includes("127.0.0.1:8400"));

  test("are in five languages", () => {
    expect(requests.map(({ language }) => language)).toEqual(Object.keys(runners));
  });

  test.each(Object.keys(runners))("%s", async (language) => {
    const { absent, command } = runners[language]!;
    if (absent) return;
    const { text } = requests.find((request) => request.language === language)!;
    const child = Bun.spawn(command(text.replaceAll("http://127.0.0.1:8400", gateway.url), folder), {
      cwd: clients,
      env: {
        PATH: process.env["PATH"],
        HOME: folder,
        GOCACHE: join(folder, "go"),
        GOFLAGS: "-modcacherw",
        TOLLGATE_KEY: gateway.operatorKey,
      },
      stdout: "pipe",
      stderr: "pipe",
    });
    const [output, errors, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    expect([code, code === 0 ? "" : errors]).toEqual([0, ""]);
    expect(output.length).toBeGreaterThan(20);
    expect(output).not.toMatch(/"error": ?\{/);
  });
});
