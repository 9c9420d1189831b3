// Flags win over the environment, the environment over the file, the file over the defaults; every fault is named.
import { describe, expect, test } from "bun:test";
import { embeddedCatalog } from "../../src/core/catalog.ts";
import { problemOfDatabaseUrl } from "../../src/config/database-url.ts";
import {
  addressesOf,
  checkModelIds,
  ConfigError,
  isBehindProxy,
  loadConfig,
  readConfig,
} from "../../src/config/config.ts";

const read = (toml: string, flags = {}, environment = {}) => readConfig("gate.toml", toml, flags, environment);
const example = `
[server]
share_prefix_cache = true
host = "127.0.0.2"
port = 8401
base_url = "https://api.example.com/"
cors_origins = ["HTTPS://Chat.example.com:443/", "http://localhost:5173", "https://bücher.example", "app://Obsidian.md"]
site_url = "https://example.com"

[[nodes]]
name = "gpu-1"
url = "http://127.0.0.1:8000/v1"
api_key_env = "VLLM_KEY"
slots = 32
[nodes.models]
"core-3" = "qwen3-235b"
"*" = "qwen3-8b"

[[nodes]]
name = "gpu-2"
url = "http://127.0.0.1:8002"

[queue]
max_wait_seconds = 30
[search]
provider = "searxng"
url = "http://127.0.0.1:8888"
[responses]
keep_days = 7
keep_max_mib = 64

[catalog]
file = "/etc/tollgate/catalog.json"
[limits]
default_output_tokens = 16384

[log]
level = "warn"
format = "text"
[metrics]
token_env = "SCRAPE_TOKEN"
[telemetry]
otlp_endpoint = "http://127.0.0.1:4318/"
sample_ratio = 0.25
[retention]
usage_days = 400
[backups]
every_hours = 12
keep = 3
`;

describe("whether accounts share what engines keep of prompts", () => {
  const row = (more = "") => `[[nodes]]\nname = "a"\nurl = "http://127.0.0.1:1"\n${more}`;
  test("is told of all nodes in [server], or in [nodes] where no rows stand", () => {
    for (const table of ["server", "nodes"]) {
      expect(read(`[${table}]\nshare_prefix_cache = true`)).toMatchObject({ sharePrefixCache: true, nodes: [] });
    }
    expect(read("[server]\nport = 9\n[nodes]\nshare_prefix_cache = false")).toMatchObject({
      port: 9,
      sharePrefixCache: false,
    });
    expect(read(row())).toMatchObject({ sharePrefixCache: null });
  });
  test("is told of a node in its row", () => {
    expect(read(row("share_prefix_cache = false")).nodes[0]).toMatchObject({ sharePrefixCache: false });
    expect(read(row()).nodes[0]).not.toHaveProperty("sharePrefixCache");
    expect(read(row('share_prefix_cache = "plan"')).nodes[0]).toMatchObject({ sharePrefixCache: "plan" });
    expect(read('[server]\nshare_prefix_cache = "account"')).toMatchObject({ sharePrefixCache: "account" });
  });
  test.each([
    [
      "[nodes]\nshare_prefix_cache = 1",
      'gate.toml:2: nodes.share_prefix_cache must be true, false, "plan", "team" or "account", is 1',
    ],
    ['[nodes]\nname = "a"', "gate.toml:1: nodes must be one or more tables [[nodes]]"],
    ["[nodes]", "gate.toml:1: nodes must be one or more tables [[nodes]]"],
  ])("%s is told as wrong", (toml, message) => {
    expect(() => read(toml)).toThrow(message);
  });
});

test("slots are a number or follow the engine's load", () => {
  const slots = (written: string) =>
    read(`[[nodes]]\nname = "a"\nurl = "http://127.0.0.1:1"\nslots = ${written}`).nodes[0]!.slots;
  expect([slots("3"), slots('"auto"')]).toEqual([3, "auto"]);
  expect(() => slots('"many"')).toThrow('nodes[0].slots must be a whole number from 1 to 100000, or "auto", is "many"');
  expect(() => slots("0")).toThrow("must be a whole number");
});

test("a database's address is none but a whole one, and is not shown", () => {
  for (const url of ["mysql://u:hidden@db/t", "postgres://u:hidden@db", "postgres://", "db-1 hidden"]) {
    for (const read of [
      () => readConfig("gate.toml", `[ledger]\nurl = ${JSON.stringify(url)}`, {}, {}),
      () => readConfig(null, "", {}, { TOLLGATE_DATABASE_URL: url }),
    ]) {
      let said = "";
      try {
        read();
      } catch (thrown) {
        said = (thrown as Error).message;
      }
      expect(said).toContain("must be an address such as postgres://");
      expect(said).not.toContain("hidden");
    }
  }
  for (const url of ["postgres://u:hidden%zz@db/t", "postgres://u:hidden@db/%e9"]) {
    expect(problemOfDatabaseUrl(url)).toContain("has a % that begins no character; in a password");
  }
  expect(problemOfDatabaseUrl("postgres://u:hi%2Fdd%25en@db/t%C3%A9")).toBeNull();
  const url = "postgres://u:hidden@db-1:5432/tollgate";
  const { databaseUrl, keys } = readConfig(null, "", {}, { TOLLGATE_DATABASE_URL: url });
  expect([databaseUrl, keys]).toEqual([url, [url]]);
  const backups = "[backups]\nevery_hours = 1";
  expect(() => readConfig("gate.toml", backups, {}, { TOLLGATE_DATABASE_URL: url })).toThrow("pg_dump");
});

const gibibyte = 1024 ** 3;
const files = {
  folder: null,
  keepMs: 30 * 86_400_000,
  fileBytesMax: 4 * gibibyte,
  accountBytesMax: 20 * gibibyte,
  totalBytesMax: 200 * gibibyte,
};

describe("a configuration", () => {
  test("is complete without a file, flags and environment", () => {
    expect(readConfig(null, "", {}, {})).toEqual({
      file: null,
      isBlank: true,
      host: "127.0.0.1",
      port: 8400,
      baseUrl: null,
      siteUrl: null,
      corsOrigins: [],
      stopGraceMs: 30_000,
      threads: 1,
      sharePrefixCache: null,
      databaseUrl: null,
      gateway: expect.any(String),
      gatherMs: 0,
      dataFolder: "./data/var",
      nodes: [],
      queueMaxWaitMs: 600_000,
      search: null,
      mcp: [],
      storedResponses: { keepMs: 30 * 86_400_000, accountBytesMax: 100 * 1024 ** 2 },
      files,
      signUp: false,
      passwords: true,
      accountDeletion: "off",
      machineTokenMs: 30 * 86_400_000,
      managedSettings: [],
      addressHeader: null,
      oidc: null,
      stripe: null,
      catalogFile: null,
      models: [],
      plans: [],
      listNodeModels: false,
      outputTokensDefault: 4_096,
      inputRequestsPerMinute: 3_000,
      logLevel: "info",
      logFormat: null,
      metricsToken: null,
      telemetry: null,
      endUserHeader: null,
      webhooks: [],
      mail: null,
      lowBalanceTokens: 200_000,
      usageKeepDays: null,
      failedKeepDays: 7,
      backups: null,
      keys: [],
    });
  });

  test("takes every key of the file", () => {
    expect(read(example, {}, { VLLM_KEY: "secret", SCRAPE_TOKEN: "scrape" })).toEqual({
      file: "gate.toml",
      isBlank: false,
      host: "127.0.0.2",
      port: 8401,
      baseUrl: "https://api.example.com",
      siteUrl: "https://example.com",
      corsOrigins: [
        "https://chat.example.com",
        "http://localhost:5173",
        "https://xn--bcher-kva.example",
        "app://obsidian.md",
      ],
      stopGraceMs: 30_000,
      threads: 1,
      sharePrefixCache: true,
      databaseUrl: null,
      gateway: expect.any(String),
      gatherMs: 0,
      dataFolder: "./data/var",
      nodes: [
        {
          name: "gpu-1",
          url: "http://127.0.0.1:8000/v1",
          apiKey: "secret",
          slots: 32,
          models: { "core-3": "qwen3-235b", "*": "qwen3-8b" },
        },
        { name: "gpu-2", url: "http://127.0.0.1:8002/v1", apiKey: null, slots: null, models: { "*": "*" } },
      ],
      queueMaxWaitMs: 30_000,
      search: { provider: "searxng", url: "http://127.0.0.1:8888", apiKey: null, timeoutMs: 10_000, pages: 3 },
      mcp: [],
      storedResponses: { keepMs: 7 * 86_400_000, accountBytesMax: 64 * 1024 ** 2 },
      files,
      signUp: false,
      passwords: true,
      accountDeletion: "off",
      machineTokenMs: 30 * 86_400_000,
      managedSettings: [],
      addressHeader: null,
      oidc: null,
      stripe: null,
      catalogFile: "/etc/tollgate/catalog.json",
      models: [],
      plans: [],
      listNodeModels: false,
      outputTokensDefault: 16_384,
      inputRequestsPerMinute: 3_000,
      logLevel: "warn",
      logFormat: "text",
      metricsToken: "scrape",
      telemetry: {
        otlpEndpoint: "http://127.0.0.1:4318",
        sampleRatio: 0.25,
        otlpHeaders: {},
        otlpProtocol: "http/protobuf",
        otlpMetrics: false,
        users: "hashed",
        content: false,
        contentAccounts: null,
        redact: [],
      },
      endUserHeader: null,
      webhooks: [],
      mail: null,
      lowBalanceTokens: 200_000,
      usageKeepDays: 400,
      failedKeepDays: 7,
      backups: { everyMs: 12 * 3_600_000, keep: 3 },
      keys: ["secret", "scrape"],
    });
  });

  test("takes how much is logged from the environment before the file, and refuses a level that there is not", () => {
    const toml = '[log]\nlevel = "warn"\nformat = "text"';
    expect(read(toml, {}, { TOLLGATE_LOG_LEVEL: "debug", TOLLGATE_LOG_FORMAT: "json" })).toMatchObject({
      logLevel: "debug",
      logFormat: "json",
    });
    expect(() => read(toml, {}, { TOLLGATE_LOG_LEVEL: "loud" })).toThrow(
      'TOLLGATE_LOG_LEVEL must be one of "debug", "info", "warn", "error", is "loud"',
    );
  });

  // flags, environment, file -> port
  const ports: [object, object, string, number][] = [
    [{ port: "1" }, { TOLLGATE_PORT: "2", PORT: "3" }, "[server]\nport = 4", 1],
    [{}, { TOLLGATE_PORT: "2", PORT: "3" }, "[server]\nport = 4", 2],
    [{}, { PORT: "3" }, "[server]\nport = 4", 3],
    [{}, { TOLLGATE_PORT: "", PORT: "" }, "[server]\nport = 4", 4],
    [{}, {}, "", 8400],
    [{ port: "0" }, { PORT: "3" }, "", 0],
  ];
  test.each(ports)("takes the port of flags %o, environment %o, file %j as %i", (flags, environment, toml, port) => {
    expect(read(toml, flags, environment).port).toBe(port);
  });

  test("takes host and data folder from flags, then environment, then the defaults", () => {
    const environment = { TOLLGATE_HOST: "e", TOLLGATE_DATA: "/e" };
    const toml = '[server]\nhost = "f"';
    expect(read(toml, { host: "a", data: "/a" }, environment)).toMatchObject({ host: "a", dataFolder: "/a" });
    expect(read(toml, {}, environment)).toMatchObject({ host: "e", dataFolder: "/e" });
    expect(read(toml)).toMatchObject({ host: "f", dataFolder: "./data/var" });
  });

  test("takes nodes of --node instead of the file's", () => {
    const { nodes } = read(
      example,
      { node: ["http://10.0.0.1:8000", "http://10.0.0.2/api/v1/"] },
      { VLLM_KEY: "x", SCRAPE_TOKEN: "y" },
    );
    expect(nodes).toEqual([
      { name: "node-1", url: "http://10.0.0.1:8000/v1", apiKey: null, slots: null, models: { "*": "*" } },
      { name: "node-2", url: "http://10.0.0.2/api/v1", apiKey: null, slots: null, models: { "*": "*" } },
    ]);
  });

  test("finds its catalog beside the file", () => {
    const config = readConfig("/etc/tollgate/gate.toml", '[catalog]\nfile = "mine.json"', {}, {});
    expect(config.catalogFile).toBe("/etc/tollgate/mine.json");
  });

  test("gives the listening address as base and site unless the file names them", () => {
    const base = (toml: string, flags = {}) => addressesOf(read(toml, flags), 9000);
    expect(base("")).toEqual({ baseUrl: "http://127.0.0.1:9000", siteUrl: "http://127.0.0.1:9000" });
    expect(base("", { host: "0.0.0.0" }).baseUrl).toBe("http://127.0.0.1:9000");
    expect(base("", { host: "::1" }).baseUrl).toBe("http://[::1]:9000");
    expect(base('[server]\nbase_url = "https://a.example/"')).toEqual({
      baseUrl: "https://a.example",
      siteUrl: "https://a.example",
    });
  });

  test("says that there is a proxy by an address that is not this machine's, or by the header of one", () => {
    const behind = (toml: string) => isBehindProxy(read(toml));
    expect(["", '[server]\nhost = "0.0.0.0"', '[server]\nbase_url = "http://[::1]:8400"'].map(behind)).toEqual([
      false,
      false,
      false,
    ]);
    expect(behind('[server]\nbase_url = "https://llm.example.org"')).toBe(true);
    expect(behind('[console]\naddress_header = "x-real-ip"')).toBe(true);
  });
});

test("a node's own depths and the models whose thoughts its template opens", () => {
  const toml = `[[nodes]]
name = "a"
url = "http://127.0.0.1:1/v1"
think_tag_opened = ["deepseek-r1"]
[nodes.depth]
off = { chat_template_kwargs = { enable_thinking = false } }
high = {}
`;
  expect(readConfig("gate.toml", toml, {}, {}).nodes[0]).toMatchObject({
    thinkTagOpened: ["deepseek-r1"],
    depth: { off: { chat_template_kwargs: { enable_thinking: false } }, high: {} },
  });
});

describe("a node that the gateway starts", () => {
  const commandLine = ["serve", "--port", "{port}"];

  test("has a free port and the folder beside the file", () => {
    const toml = `[[nodes]]\nname = "a"\ncommand = ${JSON.stringify(commandLine)}\ncwd = "models"\nstart_timeout_seconds = 5`;
    expect(readConfig("/etc/tollgate/gate.toml", toml, {}, {}).nodes[0]).toMatchObject({
      url: "http://127.0.0.1:{port}/v1",
      managed: { command: commandLine, environment: {}, folder: "/etc/tollgate/models", startTimeoutMs: 5_000 },
    });
  });

  test("may have an address of its own", () => {
    const toml = '[[nodes]]\nname = "a"\nurl = "http://127.0.0.1:9000"\ncommand = ["serve"]\nenv = { GPU = "1" }';
    expect(readConfig("gate.toml", toml, {}, {}).nodes[0]).toMatchObject({
      url: "http://127.0.0.1:9000/v1",
      managed: { command: ["serve"], environment: { GPU: "1" }, folder: null },
    });
  });

  test("comes from --gguf, in place of the nodes of the file and beside those of --node", () => {
    const toml = '[[nodes]]\nname = "a"\nurl = "http://127.0.0.1:1/v1"\n';
    const nodes = (flags: object) => readConfig("gate.toml", toml, flags, {}).nodes.map(({ name }) => name);
    expect(nodes({ gguf: "tiny.gguf" })).toEqual(["llama-server"]);
    expect(nodes({ gguf: "tiny.gguf", node: ["http://127.0.0.1:2"] })).toEqual(["node-1", "llama-server"]);
    expect(nodes({})).toEqual(["a"]);
  });
});

test("the console's settings and the payment provider's secrets, of the file or of the environment", () => {
  const toml = `
    [console]
    sign_up = true
    address_header = "X-Forwarded-For"
    [stripe]
    secret_key_env = "STRIPE_KEY"
    webhook_secret = "whsec_1"`;
  const config = readConfig("/etc/tollgate/gate.toml", toml, {}, { STRIPE_KEY: "sk_1" });
  expect(config).toMatchObject({ signUp: true, addressHeader: "x-forwarded-for" });
  expect(config.stripe).toEqual({ secretKey: "sk_1", webhookSecret: "whsec_1", url: null });
});

describe("search and tools", () => {
  test("a folder is found from the configuration file, and cited under an address of its own", () => {
    const { search } = readConfig("/etc/tollgate/gate.toml", '[search]\nprovider = "local"\nfolder = "docs"', {}, {});
    expect(search).toEqual({
      provider: "local",
      folder: "/etc/tollgate/docs",
      baseUrl: "https://files.invalid",
      rescanIntervalMs: 60_000,
    });
  });

  test("MCP servers are reached by address or command, by all or by some", () => {
    const servers = `[[mcp]]
      name = "web"
      url = "http://127.0.0.1:9000/mcp"
      api_key_env = "MCP_KEY"
      models = ["core-3"]
      plans = ["pro"]
      tools = ["forecast"]
      timeout_seconds = 5
      [[mcp]]
      name = "files"
      command = "npx"
      args = ["-y", "server"]
      env = { LEVEL = "warn" }`;
    expect(read(servers, {}, { MCP_KEY: "secret" }).mcp).toEqual([
      {
        name: "web",
        reached: { by: "http", url: "http://127.0.0.1:9000/mcp", apiKey: "secret" },
        models: ["core-3"],
        plans: ["pro"],
        tools: ["forecast"],
        timeoutMs: 5_000,
      },
      {
        name: "files",
        reached: { by: "stdio", command: "npx", args: ["-y", "server"], environment: { LEVEL: "warn" } },
        models: null,
        plans: null,
        tools: null,
        timeoutMs: 60_000,
      },
    ]);
  });
});

describe("a wrong configuration", () => {
  const node = '[[nodes]]\nname = "a"\nurl = "http://127.0.0.1:1/v1"\n';
  const faults: [string, string, string][] = [
    ["[server]\nport = 70000", "gate.toml:2: server.port must be a whole number from 0 to 65535, is 70000", "a port"],
    ["[server]\nprot = 1", 'gate.toml:2: server.prot is unknown; did you mean "port"?', "a misspelt key"],
    ["[serve]\nport = 1", 'gate.toml:1: serve is unknown; did you mean "server"?', "a misspelt table"],
    ["[server]\nport = = 1", "gate.toml:2: TOML Parse error: Expected a value but found '='", "a syntax error"],
    ...(
      ["https://a.example/page", "a.example", "https://*.a.example", "null", "https://u:p@a.example", ""] as const
    ).map((origin): [string, string, string] => [
      `[server]\ncors_origins = ["${origin}"]`,
      `gate.toml:2: server.cors_origins[0] must be an origin such as "https://app.example.com", without a path, is "${origin}"`,
      `the origin "${origin}"`,
    ]),
    [
      '[server]\ncors_origins = ["http://a", "*"]',
      'gate.toml:2: server.cors_origins[1] must be alone: "*" is all origins',
      "all origins and one",
    ],
    [
      '[server]\ncors_origins = "*"',
      'gate.toml:2: server.cors_origins must be a list of origins such as "https://app.example.com", or ["*"] for all, is "*"',
      "no list of origins",
    ],
    ['[[nodes]]\nname = "a"', "gate.toml:1: nodes[0].url is missing: must be an http:// or https:// address", "no URL"],
    [
      '[[nodes]]\nname = "a"\nurl = "ftp://x"',
      'gate.toml:3: nodes[0].url must be an http:// or https:// address without user, query and fragment, is "ftp://x"',
      "a bad URL",
    ],
    [
      '[[nodes]]\nname = "a"\ncommand = ["serve"]',
      'gate.toml:3: nodes[0].command must have "{port}" where the port belongs, because there is no url',
      "a command without port",
    ],
    [
      `${node}command = ["serve", "{port}"]`,
      'gate.toml:3: nodes[0].url must be absent where command has "{port}"',
      "a command and an address that disagree",
    ],
    [
      `${node}cwd = "models"`,
      "gate.toml:4: nodes[0].cwd must be absent where no command is given",
      "a folder of nothing",
    ],
    [
      `${node}command = []`,
      "gate.toml:4: nodes[0].command must be a program and its arguments, as a list of texts, is []",
      "no program",
    ],
    [
      "[backups]\nevery_hours = 0.00001",
      "gate.toml:2: backups.every_hours must be a number of hours from 0.1 to 8760, or 0 (none), is 0.00001",
      "backups without end",
    ],
    [node + node, "gate.toml:5: nodes[1].name must be unique, is also the name of nodes[0]", "a name used twice"],
    [
      `${node}slots = 0`,
      'gate.toml:4: nodes[0].slots must be a whole number from 1 to 100000, or "auto", is 0',
      "no slots",
    ],
    [
      `${node}slots = 100001`,
      'gate.toml:4: nodes[0].slots must be a whole number from 1 to 100000, or "auto", is 100001',
      "too many slots",
    ],
    [
      `${node}[nodes.depth]\nxhigh = {}`,
      'gate.toml:5: nodes[0].depth.xhigh is unknown; did you mean "high"?',
      "a depth that is none",
    ],
    [
      `${node}[nodes.depth]\noff = 3`,
      "gate.toml:5: nodes[0].depth.off must be a table of fields of the node's request, is 3",
      "a depth that is no table",
    ],
    [
      `${node}[nodes.depth.off]\nmodel = "x"`,
      "gate.toml:5: nodes[0].depth.off.model must be absent: it is not for a depth to set",
      "a depth that changes the model",
    ],
    [
      `${node}api_key_env = "NOT_SET"`,
      "gate.toml:4: nodes[0].api_key_env must name a set environment variable, but NOT_SET is not set",
      "an unset variable",
    ],
    [
      `${node}api_key = "a"\napi_key_env = "SET"`,
      "gate.toml:4: nodes[0].api_key must be absent where api_key_env is given",
      "two keys",
    ],
    [
      `${node}[nodes.models]\n"core-3" = 7`,
      "gate.toml:5: nodes[0].models.core-3 must be the name the node knows the model by, is 7",
      "a model name that is no text",
    ],
    [
      "[queue]\nmax_wait_seconds = 0",
      "gate.toml:2: queue.max_wait_seconds must be a number of seconds from 1 to 86400, is 0",
      "no waiting at all",
    ],
    [
      '[search]\nprovider = "searxng"',
      'gate.toml:1: search.url is missing: must be an http:// or https:// address for provider "searxng"',
      "a search without its address",
    ],
    [
      '[console]\nsign_up = "yes"',
      'gate.toml:2: console.sign_up must be true or false, is "yes"',
      "an answer that is neither true nor false",
    ],
    [
      '[console]\naddress_header = "a b"',
      'gate.toml:2: console.address_header must be a header such as "x-forwarded-for", is "a b"',
      "a header with a space",
    ],
    [
      '[stripe]\nsecret_key = "sk_1"',
      "gate.toml:1: stripe.webhook_secret_env is missing: payments need webhook_secret_env or webhook_secret",
      "payments that nobody signs",
    ],
    [
      '[stripe]\nsecret_key_env = "NOT_SET"\nwebhook_secret = "w"',
      "gate.toml:2: stripe.secret_key_env must name a set environment variable, but NOT_SET is not set",
      "payments without their key",
    ],
    [
      '[search]\nprovider = "brave"',
      'gate.toml:1: search.api_key_env is missing: provider "brave" needs api_key_env or api_key',
      "a search without its key",
    ],
    [
      '[search]\nprovider = "local"',
      'gate.toml:1: search.folder is missing: provider "local" searches a folder of files',
      "a search in no folder",
    ],
    [
      '[search]\nprovider = "local"\nfolder = "docs"\nfetch_pages = 3',
      'gate.toml:4: search.fetch_pages must be absent for provider "local"',
      "a key of another provider",
    ],
    [
      '[search]\nprovider = "tavily"\napi_key = "x"\nfetch_pages = 11',
      "gate.toml:4: search.fetch_pages must be a whole number from 0 to 10, is 11",
      "too many pages",
    ],
    ['[[mcp]]\nname = "a"', "gate.toml:1: mcp[0] must have either url or command", "a server that is nowhere"],
    [
      '[[mcp]]\nname = "a"\nurl = "http://h/mcp"\nargs = ["x"]',
      "gate.toml:4: mcp[0].args must be absent where url is given",
      "arguments of no program",
    ],
    [
      '[[mcp]]\nname = "a"\ncommand = "x"\n[[mcp]]\nname = "a"\ncommand = "y"',
      "gate.toml:5: mcp[1].name must be unique, is also the name of mcp[0]",
      "two servers of one name",
    ],
    [
      '[[mcp]]\nname = "a_b"\ncommand = "x"',
      'gate.toml:2: mcp[0].name must be a name of up to 24 letters, digits and dashes, is "a_b"',
      "a server's name that no tool can begin with",
    ],
    [
      '[[mcp]]\nname = "a"\ncommand = "x"\nplans = ["gold"]',
      'gate.toml:4: mcp[0].plans[0] must be one of "free", "plus", "standard", "pro", is "gold"',
      "a plan that nobody has",
    ],
    [
      '[[managed_settings]]\nplans = ["pro", "gold"]\nsettings = {}',
      'gate.toml:2: managed_settings[0].plans[1] must be one of "free", "plus", "standard", "pro", is "gold"',
      "settings of a plan that nobody has",
    ],
  ];
  test.each(faults)("is refused: %j", (toml, message) => {
    expect(() => read(toml, {}, { SET: "x" })).toThrow(new ConfigError(message));
  });

  test("never shows a key", () => {
    expect(() => read(`${node}api_key = 31337`)).toThrow(
      new ConfigError("gate.toml:4: nodes[0].api_key must be a text that is not empty"),
    );
  });

  test.each([
    ["--port", { port: "x" }, {}],
    ["TOLLGATE_PORT", {}, { TOLLGATE_PORT: "65536" }],
  ])("names %s when the port is no port", (source, flags, environment) => {
    expect(() => read("", flags, environment)).toThrow(`${source} must be a whole number from 0 to 65535, is`);
  });

  test("names a model id that the catalog lacks, with the nearest one", () => {
    const config = read(`${node}[nodes.models]\n"core-33" = "x"`);
    expect(() => checkModelIds(config, embeddedCatalog())).toThrow(
      new ConfigError(
        'gate.toml: node "a": models."core-33" must be a model id of the catalog, did you mean "core-3"?',
      ),
    );
    checkModelIds(read(`${node}[nodes.models]\n"core-3" = "x"\n"*" = "y"`), embeddedCatalog());
  });

  test("names a model id of an MCP server that the catalog lacks", () => {
    const config = read('[[mcp]]\nname = "a"\ncommand = "x"\nmodels = ["core-3", "core-33"]');
    expect(() => checkModelIds(config, embeddedCatalog())).toThrow(
      new ConfigError(
        'gate.toml: mcp "a": models: "core-33" must be a model id of the catalog, did you mean "core-3"?',
      ),
    );
  });

  test("is named when its file cannot be read", () => {
    expect(loadConfig({ config: "/nowhere/gate.toml" }, {})).rejects.toThrow(
      /^\/nowhere\/gate\.toml: cannot be read: /,
    );
    expect(loadConfig({}, { TOLLGATE_CONFIG: "/nowhere/gate.toml" })).rejects.toThrow(/^\/nowhere\/gate\.toml: /);
  });
});

describe("sign-in with a provider", () => {
  const oidc = (more: string, environment = {}) =>
    read(`[oidc]\nissuer = "https://login.example.org/"\n${more}`, {}, environment);

  test("takes its client from variables too; the secret alone is kept out of the log", () => {
    const config = oidc('client_id_env = "ID"\nclient_secret_env = "SECRET"\nallowed_domains = ["Example.org"]', {
      ID: "tollgate",
      SECRET: "s3cret",
    });
    expect(config.oidc).toMatchObject({
      issuer: "https://login.example.org/", // as it was written: a slash at its end is part of it
      clientId: "tollgate",
      clientSecret: "s3cret",
      name: "login.example.org",
      allowedDomains: ["example.org"],
    });
    expect(config.keys).toEqual(["s3cret"]);
  });

  test.each([
    ["", "client_id is missing"],
    ['client_id = "a"\nclient_id_env = "ID"', "must be absent where client_id_env is given"],
    ['client_id = "a"\nplan = "gold"', 'oidc.plan must be one of "free"'],
    ['client_id = "a"\nscopes = ["email"]', 'must have "openid" among them'],
    ['client_id = "a"\nallowed_domains = ["@example.org"]', "must be a domain"],
  ])("%j is a fault", (more, says) => {
    expect(() => oidc(more, { ID: "tollgate" })).toThrow(says);
  });

  test("instead of passwords takes a provider", () => {
    expect(() => read("[console]\npasswords = false")).toThrow(
      "must be true without [oidc]: there would be no way to sign in",
    );
    expect(oidc('client_id = "a"\n[console]\npasswords = false').passwords).toBe(false);
  });
});
