// What the README and the guide say is true: their reference of the configuration is the program's, their files exist,
// their configuration is accepted, and their first requests work in every language whose tools are installed.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { checkModelIds, fileTables, readConfig } from "../src/config/config.ts";
import { listed } from "../src/commands/commands.ts";
import { commandReference } from "../src/commands/help.ts";
import { configReference } from "../src/config/reference.ts";
import { chapters } from "../src/docs/guide.ts";
import { embeddedCatalog } from "../src/core/catalog.ts";
import { freePort } from "../src/http/free-port.ts";
import { bodyMaxBytes } from "../src/core/limits.ts";
import { runToEnd } from "./fixtures/children.ts";
import { eventually } from "./fixtures/eventually.ts";
import { GatewayProcess } from "./fixtures/gateway-process.ts";
import { longForm, missing } from "./fixtures/optional.ts";
import { TextStream } from "./fixtures/text-stream.ts";

setDefaultTimeout(180_000);
/** Go's first compilation takes a minute of an idle machine. */
const childTimeLimitMs = 170_000;

const root = join(import.meta.dir, "..");
/** The README and the chapters of the guide, by their paths. */
const documents = new Map(
  ["README.md", ...chapters.map(({ id }) => `src/docs/guide/${id}.md`)].map((path) => [
    path,
    readFileSync(join(root, path), "utf8"),
  ]),
);
const chapter = (id: string): string => documents.get(`src/docs/guide/${id}.md`)!;
type Block = Readonly<{ language: string; text: string }>;
const blocksOf = (markdown: string): readonly Block[] =>
  [...markdown.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].map(([, language, text]) => ({
    language: language!,
    text: text!,
  }));
const blocks = [...documents.values()].flatMap(blocksOf);

test("its reference of the configuration is what the program says (tollgate help config)", () => {
  const [, written] = /<!-- configuration: .* -->\n\n([\s\S]*?)\n\n<!-- end of configuration -->/.exec(
    chapter("configuration"),
  )!;
  expect(written).toBe(configReference());
});

test("its table of commands is what the program says (tollgate help commands)", async () => {
  const [, written] = /<!-- commands: .* -->\n\n([\s\S]*?)\n\n<!-- end of commands -->/.exec(chapter("operations"))!;
  const plain = (table: string): string => table.replaceAll(/ {2,}/g, " ").replaceAll(/-{3,}/g, "---");
  expect(plain(written!)).toBe(commandReference(await listed()));
});

/** Where a link into a Markdown text may lead. */
const anchorsOf = (text: string): string[] =>
  [...text.matchAll(/^#+ (.*)$/gm)].map(([, title]) =>
    title!
      .toLowerCase()
      .replace(/[^\w -]/g, "")
      .replaceAll(" ", "-"),
  );

test("the README is a front door, of at most 6 KB", () => {
  expect(Buffer.byteLength(documents.get("README.md")!)).toBeLessThanOrEqual(6 * 1024);
});

/** Also those that only people who build on it read. */
const linkingPaths = ["*.md", ".github/*.md", "bench/*.md", "test/*.md", "src/**/*.md"].flatMap((pattern) => [
  ...new Bun.Glob(pattern).scanSync({ cwd: root, dot: true }),
]);
test.each(linkingPaths)("the files and headings that %s names are there", (path) => {
  const targets = [...readFileSync(join(root, path), "utf8").matchAll(/\]\(([^)]+)\)/g)].map(([, target]) => target!);
  for (const target of targets.filter((each) => !/^https?:/.test(each))) {
    const [to = "", anchor] = target.split("#");
    const file = to === "" ? join(root, path) : join(root, dirname(path), to);
    expect([target, existsSync(file)]).toEqual([target, true]);
    if (anchor !== undefined) expect(anchorsOf(readFileSync(file, "utf8"))).toContain(anchor);
  }
});

test("the decisions are indexed, dated, short, and wrapped for people", () => {
  const index = readFileSync(join(root, "src/DECISIONS.md"), "utf8");
  for (const name of readdirSync(join(root, "src/decisions"))) {
    expect(index).toContain(`(decisions/${name})`);
    const text = readFileSync(join(root, "src/decisions", name), "utf8");
    expect([name, text.split("\n").filter((line) => line.length > 120)]).toEqual([name, []]);
    if (name === "packages.md") continue; // a list of reasons
    const undated = text
      .split(/^## /m)
      .slice(1)
      .filter((entry) => !/^.+\n\n20\d\d-\d\d-\d\d/.test(entry));
    expect([name, undated]).toEqual([name, []]);
    const long = text.split(/^## /m).filter((entry) => entry.trim().split("\n").length > 16);
    expect([name, long]).toEqual([name, []]);
  }
});

const signing = `whsec_${"A".repeat(44)}`;
const webhookVariables = {
  SMTP_PASSWORD: "x",
  OPS_WEBHOOK: "https://hooks.example.org/ops",
  OPS_WEBHOOK_SECRET: signing,
  PAGER_SECRET: signing,
};

test("its configuration is taken by the program", () => {
  const keys = { VLLM_KEY: "a", OIDC_SECRET: "o", STRIPE_KEY: "b", STRIPE_WEBHOOK: "c", SCRAPE_TOKEN: "d" };
  const variables = { ...keys, ...webhookVariables, OTLP_HEADERS: "x-scope=a" };
  const tables = blocks.filter(({ language, text }) => language === "toml" && !text.includes("model_providers"));
  expect(tables.length).toBeGreaterThan(2);
  for (const { text } of tables) {
    const config = readConfig("tollgate.toml", text, {}, variables);
    checkModelIds(config, embeddedCatalog());
  }
});

describe("its sample of the configuration", () => {
  const sample = readFileSync(join(root, "src/docs/guide/sample.toml"), "utf8");
  // What stands behind "# " is configuration, but for the first lines; what stands behind "## " is not.
  const complete = sample
    .replace(/^(?:#.*\n)+/, "")
    .replace(/^\[search\][^]*?^# (?=\[search\])/m, "# ")
    .replaceAll(/^# /gm, "");

  test("starts as it is", async () => {
    await using gateway = await GatewayProcess.start({ config: sample });
    const reply = await fetch(`${gateway.url}/v1/models`, {
      headers: { authorization: `Bearer ${gateway.operatorKey}` },
    });
    const { data } = (await reply.json()) as { data: { id: string }[] };
    expect([reply.status, data.map(({ id }) => id)]).toEqual([200, ["house"]]);
  });

  test("is taken with everything in it, too", () => {
    const names = [...complete.matchAll(/_env = "(\w+)"/g)].map(([, name]) => [name, "x"] as const);
    const folder = mkdtempSync(join(tmpdir(), "tollgate-sample-"));
    const variables = { ...Object.fromEntries(names), ...webhookVariables };
    const config = readConfig(join(folder, "sample.toml"), complete, {}, variables);
    rmSync(folder, { recursive: true });
    expect(config.nodes.map(({ name }) => name)).toEqual(["gpu-box", "gpu-1", "qwen"]);
    expect([config.mcp.length, config.models.length, config.plans.length]).toEqual([1, 4, 2]);
  });

  test("names every key of every table", () => {
    const sections = new Map<string, string>();
    for (const [, name, text] of complete.matchAll(/^\[+([a-z_]+)[\].](.*(?:\n(?!\[+(?!\1\.)).*)*)/gm)) {
      sections.set(name!, (sections.get(name!) ?? "") + text!);
    }
    const lacking = fileTables.flatMap(({ name, keys }) =>
      Object.keys(keys)
        .filter((key) => !new RegExp(`\\b${key}(?: =|\\])`).test(sections.get(name) ?? ""))
        .map((key) => `${name}.${key}`),
    );
    expect(lacking).toEqual([]);
  });
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

  const [section] = /^## First requests\n[\s\S]*/m.exec(chapter("start"))!;
  const isRequest = ({ text }: Block): boolean => text.includes("127.0.0.1:8400");
  const requests = blocksOf(section).filter(isRequest);
  const ofReadme = blocksOf(documents.get("README.md")!).filter(
    (block) => isRequest(block) && ["sh", "python"].includes(block.language) && !block.text.includes("npm run bench"),
  );

  test("are in five languages", () => {
    expect(requests.map(({ language }) => language)).toEqual(Object.keys(runners));
    expect(ofReadme.map(({ language }) => language)).toEqual(["sh", "python"]);
  });

  const all = [
    ...requests.map((block) => ["the guide", block.language, block.text] as const),
    ...ofReadme.map((block) => ["the README", block.language, block.text.replace(/^export .*\n/, "")] as const),
  ];
  test.each(all)("of %s in %s", async (_, language, text) => {
    const { absent, command } = runners[language]!;
    if (absent) return;
    const { code, stdout, stderr } = await runToEnd(
      command(text.replaceAll("http://127.0.0.1:8400", gateway.url), folder),
      {
        cwd: clients,
        env: {
          PATH: process.env["PATH"],
          HOME: folder,
          // its own cache, which spares all but the first run a minute of compiling
          GOCACHE: process.env["GOCACHE"] ?? join(homedir(), ".cache/go-build"),
          // A program of the standard library alone: nothing is fetched, no other toolchain either.
          GOFLAGS: "-modcacherw -mod=mod",
          GOPROXY: "off",
          GOTOOLCHAIN: "local",
          TOLLGATE_KEY: gateway.operatorKey,
        },
        timeLimitMs: childTimeLimitMs,
      },
    );
    expect([code, code === 0 ? "" : stderr]).toEqual([0, ""]);
    expect(stdout.length).toBeGreaterThan(20);
    expect(stdout).not.toMatch(/"error": ?\{/);
  });
});

describe("its commands", () => {
  const shell = blocks.filter(({ language }) => language === "sh").map(({ text }) => text);

  test("are npm's, scripts that there are, or the program's own", () => {
    const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { scripts: object };
    const named = shell.flatMap((text) => [...text.matchAll(/npm run (?:-s )?([\w:]+)/g)].map(([, name]) => name!));
    expect(new Set(named)).toContain("tollgate");
    for (const name of named) expect(Object.keys(scripts)).toContain(name);
    expect(shell.filter((text) => /^(?:\S+=\S+ )?bun /m.test(text))).toEqual([]); // npm alone leaves none on the PATH
  });

  const withoutNpm = missing("npm", Bun.which("npm") !== null && Bun.which("node") !== null, "install it");
  // Those of the chapter about a team are walked by docs/road.test.ts.
  const forAccounts = shell.filter((text) => text.includes("accounts create") && text.includes("npm run"));
  test.skipIf(withoutNpm).each(longForm ? forAccounts : forAccounts.slice(0, 1))(
    "for accounts work with Node and npm alone: %s",
    async (text) => {
      await using gateway = await GatewayProcess.start({ config: "" });
      const path = mkdtempSync(join(tmpdir(), "tollgate-path-"));
      for (const program of ["node", "npm", "sh"]) symlinkSync(Bun.which(program)!, join(path, program));
      const { code, stdout, stderr } = await runToEnd(["sh", "-euc", text], {
        cwd: root,
        // npm asks nobody whether there is a newer npm
        env: { PATH: path, HOME: tmpdir(), TOLLGATE_DATA: gateway.dataFolder, npm_config_update_notifier: "false" },
      });
      rmSync(path, { recursive: true });
      expect([code, stderr]).toEqual([0, ""]);
      expect(stdout).toContain("ada@example.org");
      expect(await gateway.show("ada@example.org")).toMatchObject(
        text.includes("accounts plan") ? { plan: "pro", credit: 6_000_000 } : { plan: "plus", credit: 1_000_000 },
      );
    },
  );
});

describe("its proxy", () => {
  const nginx = Bun.which("nginx", { PATH: `${process.env["PATH"]}:/usr/sbin:/usr/local/sbin` });
  const absent =
    missing("nginx", nginx !== null, "install it") || missing("openssl", Bun.which("openssl") !== null, "install it");

  /** Run in front of the gateway, with a certificate of its own. */
  async function startProxy(block: string, gatewayUrl: string): Promise<AsyncDisposable & { url: string }> {
    const folder = mkdtempSync(join(tmpdir(), "tollgate-nginx-"));
    const [key, certificate] = [join(folder, "key.pem"), join(folder, "certificate.pem")];
    const subject = ["-subj", "/CN=llm.example.org", "-days", "1", "-nodes", "-keyout", key, "-out", certificate];
    const made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", ...subject];
    expect(await runToEnd(made)).toMatchObject({ code: 0 }); // not in step: the node that serves here is looked at
    const port = freePort("127.0.0.1");
    const server = block
      .replace("listen 443", `listen 127.0.0.1:${port}`)
      .replace(/ssl_certificate .*;/, `ssl_certificate ${certificate};`)
      .replace(/ssl_certificate_key .*;/, `ssl_certificate_key ${key};`)
      .replace("http://127.0.0.1:8400", gatewayUrl);
    const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
      (of) => `${of}_temp_path ${folder}/${of};`,
    );
    const user = process.getuid?.() === 0 ? "user root;" : ""; // who may read the folder
    const http = `access_log off; ${temporary.join(" ")}\n${server}`;
    const text = `${user} daemon off; pid ${folder}/pid; error_log stderr; events {}\nhttp { ${http} }\n`;
    const file = join(folder, "nginx.conf");
    writeFileSync(file, text);
    const child = Bun.spawn([nginx!, "-p", folder, "-c", file, "-e", "stderr"], { stderr: "inherit" });
    const url = `https://127.0.0.1:${port}`;
    await eventually("the proxy listens", () =>
      through(`${url}/healthz`).then(
        ({ ok }) => ok,
        () => false,
      ),
    );
    return {
      url,
      async [Symbol.asyncDispose]() {
        child.kill();
        await child.exited;
        rmSync(folder, { recursive: true });
      },
    };
  }

  const through = (url: string, init: RequestInit = {}): Promise<Response> =>
    fetch(url, { ...init, tls: { rejectUnauthorized: false } });

  test.skipIf(absent)(
    "passes tokens on one by one and the largest body, and keeps the metrics in the house",
    async () => {
      const goOn = Promise.withResolvers<void>();
      const event = (delta: object, reason: string | null = null): string =>
        `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: reason }] })}\n\n`;
      using node = Bun.serve({
        hostname: "127.0.0.1",
        port: 0,
        async fetch(request) {
          if (request.method !== "POST") return Response.json({ object: "list", data: [] });
          await request.arrayBuffer();
          async function* answer(): AsyncGenerator<string> {
            yield event({ content: "first" });
            await goOn.promise;
            yield `${event({ content: "second" })}${event({}, "stop")}data: [DONE]\n\n`;
          }
          return new Response(answer() as never, { headers: { "content-type": "text/event-stream" } });
        },
      });
      const config = `
      [server]
      base_url = "https://llm.example.org"
      [console]
      address_header = "x-forwarded-for"
      [[nodes]]
      name = "node"
      url = "http://127.0.0.1:${node.port}/v1"
    `;
      await using gateway = await GatewayProcess.start({ config });
      const { text: block } = blocks.find(({ language }) => language === "nginx")!;
      await using proxy = await startProxy(block, gateway.url);
      const ask = (body: string): Promise<Response> =>
        through(`${proxy.url}/v1/chat/completions`, {
          method: "POST",
          headers: { authorization: `Bearer ${gateway.operatorKey}` },
          body,
        });
      const request = { model: "core-3", messages: [{ role: "user", content: "Hello" }] };

      const stream = new TextStream(await ask(JSON.stringify({ ...request, stream: true })));
      await stream.until('"first"');
      goOn.resolve(); // the node says no more before its first word has come through
      expect(await stream.whole()).toContain('"second"');

      const largest = await ask(JSON.stringify(request).padEnd(bodyMaxBytes));
      expect([largest.status, (await largest.text()).includes("firstsecond")]).toEqual([200, true]);
      expect((await through(`${proxy.url}/metrics`)).status).toBe(404);
      // nor through one that says nothing of itself, as a block without these lines
      const silent = block.replace(/location = [^}]*}/, "").replace(/proxy_set_header X-.*/, "");
      await using other = await startProxy(silent, gateway.url);
      expect((await through(`${other.url}/metrics`)).status).toBe(403);
    },
  );
});
