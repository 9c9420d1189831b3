// Every row of the table of options on a running server: what a reload calls applied is in force, and what takes a restart is
// called so. A new option does not compile here until it says how it shows.
import { Database } from "bun:sqlite";
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import catalogRows from "../../data/catalog.json" with { type: "json" };
import type { FixedOptions, LiveOptions } from "../../src/config/config.ts";
import { options } from "../../src/config/options.ts";
import { eventually } from "../fixtures/eventually.ts";
import { longForm } from "../fixtures/optional.ts";
import { makeDataFolder } from "../fixtures/first-ledger.ts";
import { OtlpCollector } from "../fixtures/otlp-collector.ts";
import { run, Server, temporaryFolder } from "../commands/program.ts";

setDefaultTimeout(120_000);

type Reloaded = Readonly<{ applied: string[]; needsRestart: string[] }>;
type Body = Readonly<{
  model?: string;
  max_tokens?: number;
  tools?: { function?: { name?: string } }[];
}>;

/** A node that says its name, tells what it was asked, and can be made to think until it is let go on. */
class Node implements Disposable {
  thinks = Promise.resolve();
  readonly #server;

  constructor(name: string, asked: (body: Body) => void) {
    const event = (chunk: object): string => `data: ${JSON.stringify(chunk)}\n\n`;
    const thought = () => this.thinks;
    async function* answer(): AsyncGenerator<string> {
      yield event({ choices: [{ index: 0, delta: { content: name }, finish_reason: null }] });
      await thought();
      yield event({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] });
      yield `${event({ choices: [], usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } })}data: [DONE]\n\n`;
    }
    this.#server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      routes: {
        "/v1/models": () => Response.json({ object: "list", data: [{ id: "m", object: "model" }] }),
        "/v1/chat/completions": async (request) => {
          asked((await request.json()) as Body);
          return new Response(answer() as never, { headers: { "content-type": "text/event-stream" } });
        },
      },
      fetch: () => new Response("not found", { status: 404 }),
    });
  }

  get url(): string {
    return `${this.#server.url}v1`;
  }

  [Symbol.dispose](): void {
    void this.#server.stop(true);
  }
}

class Site implements AsyncDisposable {
  readonly #folder = temporaryFolder();
  readonly path = this.#folder.path;
  readonly data = join(this.path, "data");
  readonly #config = join(this.path, "tollgate.toml");
  server!: Server;
  #key = "";

  async start(toml: string): Promise<void> {
    this.write(toml);
    if (this.#key === "") this.#key = await makeDataFolder(this.data);
    this.server = await Server.start(["--data", this.data, "--config", this.#config]);
  }

  async stop(): Promise<void> {
    this.server.signal("SIGTERM");
    await this.server.ended();
  }

  write(toml: string): void {
    writeFileSync(this.#config, toml);
  }

  async reload(): Promise<Reloaded> {
    const { code, stdout, stderr } = await run(["reload", "--data", this.data, "--json"]);
    if (code !== 0) throw new Error(stderr);
    return JSON.parse(stdout) as Reloaded;
  }

  fetch(path: string, { body, headers = {} }: { body?: object; headers?: object } = {}): Promise<Response> {
    return fetch(this.server.url + path, {
      method: body === undefined ? "GET" : "POST",
      headers: { authorization: `Bearer ${this.#key}`, ...headers },
      ...(body === undefined ? {} : { body: body instanceof FormData ? body : JSON.stringify(body) }),
    });
  }

  /** Of a program that may say for whom it asks. */
  async forwardingKey(): Promise<string> {
    const words = ["keys", "create", "operator@localhost", "--name", crypto.randomUUID(), "--forwards-users"];
    const { stdout } = await run([...words, "--data", this.data, "--json"]);
    return (JSON.parse(stdout) as { api_key: string }).api_key;
  }

  async lastEndUser(): Promise<string | null> {
    const { stdout } = await run(["usage", "operator@localhost", "--limit", "1", "--data", this.data, "--json"]);
    return (JSON.parse(stdout) as [{ end_user: string | null }])[0].end_user;
  }

  chat(more: object = {}): Promise<Response> {
    const messages = [{ role: "user", content: "Hello" }];
    return this.fetch("/v1/chat/completions", { body: { model: "core-3", messages, ...more } });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server[Symbol.asyncDispose]();
    this.#folder[Symbol.dispose]();
  }
}

const nodeTable = ({ url }: Node): string => `[[nodes]]\nname = "own"\nurl = "${url}"\nslots = 1\n`;

/** A shop's own models leave nothing of the catalog's to look at: they have a test of their own. */
const ofModels = { models: true, listNodeModels: true } as const satisfies Partial<Record<keyof LiveOptions, true>>;

describe.each(longForm ? [1, 2] : [2])("with %i threads", (threads) => {
  test("what nodes list is served, then a shop's own models alone, then the catalog's again", async () => {
    let asked: Body = {};
    using node = new Node("from one", (body) => void (asked = body));
    await using site = new Site();
    const server = `[server]\nport = 0\nthreads = ${threads}\n${nodeTable(node)}`;
    await site.start(server);
    const listed = async (): Promise<string[]> => {
      const { data } = (await (await site.fetch("/v1/models")).json()) as { data: { id: string }[] };
      return data.map(({ id }) => id);
    };
    const answers = async (model: string): Promise<unknown> => {
      const reply = await site.chat({ model });
      const { error } = (await reply.json()) as { error?: { code: string } };
      return reply.status === 200 ? asked.model : error?.code;
    };
    // Which thread answers is chance: each is asked.
    const expectAnswers = async (wanted: Readonly<Record<string, string>>): Promise<void> => {
      for (let time = 0; time < 4; time++) {
        for (const [model, told] of Object.entries(wanted))
          expect([model, await answers(model)]).toEqual([model, told]);
      }
    };

    await eventually("the node was looked at", async () => (await answers("m")) === "m");
    await expectAnswers({ m: "m", "core-3": "m", house: "model_not_found" });
    expect(await listed()).toHaveLength(21);

    site.write(`${server}[catalog]\nlist_node_models = true\n`);
    expect(await site.reload()).toEqual({ applied: ["catalog.list_node_models"], needsRestart: [] });
    expect((await listed()).slice(20)).toEqual([expect.any(String), "m"]);

    site.write(`${server}
      [[models]]
      id = "house"
      node_model = "m"
      aliases = ["gpt-4o"]
      [[models]]
      id = "secret"
      node_model = "m"
      hidden = true
      [[models]]
      id = "dear"
      plans = ["free"]`);
    expect(await site.reload()).toEqual({ applied: ["models", "catalog.list_node_models"], needsRestart: [] });
    expect(await listed()).toEqual(["house"]);
    await expectAnswers({ house: "m", "gpt-4o": "m", secret: "m", "core-3": "model_not_found", m: "model_not_found" });
    await expectAnswers({ dear: "model_not_allowed" });

    site.write(server);
    expect(await site.reload()).toEqual({ applied: ["models"], needsRestart: [] });
    expect(await listed()).toHaveLength(21);
    await expectAnswers({ m: "m", "core-3": "m", house: "model_not_found" });
    await site.stop();
  });

  test("every option that a reload applies is in force after it", async () => {
    let asked: Body = {};
    const keep = (body: Body): void => void (asked = body);
    using one = new Node("from one", keep);
    using other = new Node("from the other", keep);
    using collector = new OtlpCollector();
    const told: string[] = [];
    using receiver = Bun.serve({
      port: 0,
      fetch: async (request) => new Response(`${told.push(((await request.json()) as { type: string }).type)}`),
    });
    let mcpAsked = 0;
    using mcp = Bun.serve({ port: 0, fetch: () => new Response(`${(mcpAsked += 1)}`, { status: 404 }) });
    await using site = new Site();
    const server = `[server]\nport = 0\nthreads = ${threads}\n`;
    await site.start(`${server}${nodeTable(one)}`);
    // Two replies of long ago, of which one alone is to be kept as it is.
    for (let reply = 0; reply < 2; reply += 1) await (await site.chat()).text();
    await site.stop();
    {
      using database = new Database(join(site.data, "tollgate.db"));
      database.run("UPDATE journal SET at = at - 10 * 86400000, period = period - 10");
      database.run("UPDATE quota_use SET period = period - 10");
    }
    await site.start(`${server}${nodeTable(one)}`);

    const stored = async (): Promise<string> => {
      const reply = await site.fetch("/v1/responses", {
        body: { model: "core-3", input: "x".repeat(600_000), store: true },
      });
      return ((await reply.json()) as { id: string }).id;
    };
    const toolsAsked = async (): Promise<string[]> => {
      await (await site.chat({ web_search: true })).text();
      return (asked.tools ?? []).flatMap(({ function: called }) => called?.name ?? []);
    };
    const folded = (): number => {
      using database = new Database(join(site.data, "tollgate.db"), { readonly: true });
      return (database.query("SELECT coalesce(sum(lines), 0) AS lines FROM journal_folds").get() as { lines: number })
        .lines;
    };
    /** How each shows. What comes by and by is waited for where `now` says that it is to be there. */
    const shown = {
      corsOrigins: async () =>
        (await site.fetch("/v1/models", { headers: { origin: "https://a.example" } })).headers.get(
          "access-control-allow-origin",
        ),
      sharePrefixCache: async () => {
        await (await site.chat()).text();
        return "cache_salt" in asked;
      },
      nodes: async () => /from (one|the other)/.exec(await (await site.chat()).text())?.[0],
      search: toolsAsked,
      mcp: async (now: boolean) => {
        await (await site.chat()).text();
        if (now) await eventually("the MCP server is asked", async () => mcpAsked > 0);
        return mcpAsked > 0;
      },
      storedResponses: async () => {
        const ids = [await stored(), await stored(), await stored()];
        return (await site.fetch(`/v1/responses/${ids[0]}`)).status;
      },
      files: async () => {
        const form = new FormData();
        form.append("purpose", "batch");
        form.append("file", new Blob([new Uint8Array(2 * 1024 ** 2)]));
        return (await site.fetch("/v1/files", { body: form })).status;
      },
      catalogFile: async () => (await (await site.fetch("/v1/models")).text()).includes('"core-new"'),
      outputTokensDefault: async () => {
        await (await site.chat({ model: "open-05-3BIT-REAP" })).text();
        return asked.max_tokens;
      },
      // What is malformed is counted, too.
      inputRequestsPerMinute: async () => (await site.fetch("/v1/embeddings", { body: {} })).status,
      logLevel: async (now: boolean) => {
        await (await site.chat()).text();
        if (now) await site.server.says(/"event":"request"/);
        return site.server.stderr.includes('"event":"request"');
      },
      plans: async () =>
        ((await (await site.fetch("/console/api/session")).json()) as { plans: { id: string }[] }).plans.map(
          ({ id }) => id,
        ),
      endUserHeader: async () => {
        const headers = { authorization: `Bearer ${await site.forwardingKey()}`, "x-asking": "ada" };
        const messages = [{ role: "user", content: "Hello" }];
        await (await site.fetch("/v1/chat/completions", { body: { model: "core-3", messages }, headers })).text();
        return site.lastEndUser();
      },
      metricsToken: async () => (await site.fetch("/metrics", { headers: { authorization: "Bearer scrape" } })).status,
      telemetry: async (now: boolean) => {
        await (await site.chat()).text();
        if (now) await eventually("a trace came", async () => collector.spans.length > 0, 30_000);
        return collector.spans.length > 0;
      },
      managedSettings: async () => (await site.fetch("/managed/settings")).status,
      mail: async () =>
        (await run(["mail", "test", "ann@x.org", "--data", site.data])).stderr.includes("no mail is sent"),
      webhooks: async () => (await run(["webhooks", "test", "ops", "--data", site.data])).code,
      usageKeepDays: async (now: boolean) => {
        if (now) await eventually("old lines are sums", async () => folded() > 0, 60_000);
        return folded() > 0;
      },
      failedKeepDays: async (now: boolean) => {
        await (await site.chat({ model: "no-such-model" })).text();
        const kept = (): boolean => {
          using requests = new Database(join(site.data, "requests.db"), { readonly: true });
          requests.run("PRAGMA busy_timeout = 5000"); // it is just being made
          const isMade = requests.query("SELECT 1 FROM sqlite_schema WHERE name = 'failed_requests'").get() !== null;
          return isMade && requests.query("SELECT 1 FROM failed_requests LIMIT 1").get() !== null;
        };
        if (!now) await eventually("it is kept", async () => existsSync(join(site.data, "requests.db")) && kept());
        return kept();
      },
      backups: async (now: boolean) => {
        const folder = join(site.data, "backups");
        const made = () => existsSync(folder) && readdirSync(folder).some((name) => /^scheduled-.*\.db$/.test(name));
        if (now) await eventually("a backup is made", async () => made(), 30_000);
        return made();
      },
    } satisfies Record<
      Exclude<keyof LiveOptions, "queueMaxWaitMs" | "stopGraceMs" | "lowBalanceTokens" | keyof typeof ofModels>,
      (now: boolean) => Promise<unknown>
    >;
    const all = async (now: boolean): Promise<Record<string, unknown>> => {
      const seen: Record<string, unknown> = {};
      for (const [name, show] of Object.entries(shown)) seen[name] = await show(now);
      return seen;
    };

    const before = await all(false);
    expect(before).toEqual({
      corsOrigins: null,
      sharePrefixCache: false,
      nodes: "from one",
      search: [],
      mcp: false,
      storedResponses: 200,
      files: 200,
      catalogFile: false,
      plans: ["free", "plus", "standard", "pro"],
      outputTokensDefault: 4_096,
      inputRequestsPerMinute: 400,
      logLevel: false,
      endUserHeader: null,
      metricsToken: 200,
      telemetry: false,
      managedSettings: 404,
      webhooks: 1,
      mail: true,
      usageKeepDays: false,
      failedKeepDays: true,
      backups: false,
    });
    const rows = structuredClone(catalogRows);
    rows.models.push({ ...rows.models.find(({ id }) => id === "core-3")!, id: "core-new" });
    writeFileSync(join(site.path, "catalog.json"), JSON.stringify(rows));
    site.write(`${server}
      cors_origins = ["https://a.example"]
      stop_grace_seconds = 7
      share_prefix_cache = false
      ${nodeTable(other)}
      [queue]
      max_wait_seconds = 1
      [search]
      provider = "searxng"
      url = "http://127.0.0.1:9"
      [[mcp]]
      name = "away"
      url = "${mcp.url}mcp"
      [responses]
      keep_max_mib = 1
      [files]
      file_max_mib = 1
      [catalog]
      file = "catalog.json"
      [[plans]]
      id = "first"
      [[plans]]
      id = "small"
      tokens_per_day = 1
      [[plans]]
      id = "pro"
      tokens_per_day = 665000
      searches_per_day = 60
      [limits]
      default_output_tokens = 5
      embedding_requests_per_minute = 1
      [log]
      level = "debug"
      [metrics]
      token = "token-of-after"
      [telemetry]
      otlp_endpoint = "${collector.url}"
      otlp_protocol = "http/json"
      [usage]
      end_user_header = "x-asking"
      [[managed_settings]]
      plans = ["small"]
      settings = { model = "none" }
      [[managed_settings]]
      settings = { model = "core-3", permissions = { deny = ["WebFetch"] } }
      [[webhooks]]
      name = "ops"
      url = "${receiver.url}"
      [mail]
      smtp = "smtp://127.0.0.1:9"
      from = "tollgate@example.com"
      [notices]
      low_balance_tokens = 300000
      [retention]
      usage_days = 5
      failed_days = 0
      [backups]
      every_hours = 1`);
    const live = Object.entries(options).flatMap(([key, { name, change }]) =>
      change.reload === null || key in ofModels ? [] : name,
    );
    expect(await site.reload()).toEqual({ applied: live, needsRestart: [] });
    expect(await site.reload()).toEqual({ applied: [], needsRestart: [] });
    expect(await all(true)).toEqual({
      corsOrigins: "https://a.example",
      sharePrefixCache: true,
      nodes: "from the other",
      search: ["web_search"],
      mcp: true,
      storedResponses: 404,
      files: 413,
      catalogFile: true,
      plans: ["first", "small", "pro"],
      outputTokensDefault: 5,
      inputRequestsPerMinute: 429,
      logLevel: true,
      endUserHeader: "ada",
      metricsToken: 401,
      telemetry: true,
      managedSettings: 200,
      webhooks: 0,
      mail: false,
      usageKeepDays: true,
      failedKeepDays: false,
      backups: true,
    });
    // queueMaxWaitMs: the node's one place is taken, and nobody waits ten minutes for it
    const goesOn = Promise.withResolvers<void>();
    other.thinks = goesOn.promise;
    const long = await site.chat({ stream: true });
    expect((await site.chat()).status).toBe(429);
    goesOn.resolve();
    await long.text();
    // lowBalanceTokens: of 300,000 tokens some are used, which would be none of the 200,000 that hold usually
    const words = ["accounts", "create", "low@example.com", "--plan", "small", "--credit", "300000"];
    const made = await run([...words, "--data", site.data, "--json"]);
    const authorization = `Bearer ${(JSON.parse(made.stdout) as { api_key: string }).api_key}`;
    const spend = { model: "core-3", messages: [{ role: "user", content: "Hello" }] };
    await (await site.fetch("/v1/models", { headers: { authorization } })).text();
    await eventually(
      "it is told",
      async () => {
        await (await site.fetch("/v1/chat/completions", { body: spend, headers: { authorization } })).text();
        return told.includes("balance.low");
      },
      30_000,
    );
    // stopGraceMs
    await site.stop();
    expect(site.server.stderr).toContain('"graceSeconds":7');
  });
});

test("every option that takes a restart is called so, and nothing of it is applied", async () => {
  const changed = {
    host: '[server]\nhost = "127.0.0.2"',
    port: "[server]\nport = 8401",
    baseUrl: '[server]\nbase_url = "https://a.example"',
    siteUrl: '[server]\nsite_url = "https://a.example"',
    threads: "[server]\nthreads = 2",
    signUp: "[console]\nsign_up = true",
    accountDeletion: '[console]\naccount_deletion = "self"',
    addressHeader: '[console]\naddress_header = "x-real-ip"',
    oidc: '[oidc]\nissuer = "https://a.example"\nclient_id = "a"',
    stripe: '[stripe]\nsecret_key = "a"\nwebhook_secret = "b"',
    logFormat: '[log]\nformat = "text"',
    databaseUrl: '[ledger]\nurl = "postgres://127.0.0.1/tollgate"',
    gateway: '[ledger]\ngateway = "gate-2"',
    gatherMs: "[ledger]\ngather_ms = 5",
    machineTokenMs: "[console]\nmachine_token_days = 1",
  } satisfies Record<Exclude<keyof FixedOptions, "dataFolder" | "passwords">, string>; // a flag's, which stays; and with oidc alone
  await using site = new Site();
  await site.start("[server]\nport = 0\n");
  for (const [name, toml] of Object.entries(changed)) {
    site.write(
      name === "port" ? toml : toml.includes("[server]") ? `${toml}\nport = 0` : `${toml}\n[server]\nport = 0`,
    );
    expect(await site.reload()).toEqual({ applied: [], needsRestart: [options[name as keyof typeof changed].name] });
  }
  site.write(`[server]\nport = 0\n${changed.oidc}\n[console]\npasswords = false\n`);
  expect(await site.reload()).toEqual({ applied: [], needsRestart: ["console.passwords", "oidc"] });
  site.write("[server]\nport = 0\n[responses]\nkeep_days = 0\n");
  expect(await site.reload()).toEqual({ applied: [], needsRestart: ["responses"] });
  await site.stop();
});
