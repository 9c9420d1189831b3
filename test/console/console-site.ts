// The console's server side without a socket: its real routes on accounts in memory, called as a browser calls them.
import { Value } from "@sinclair/typebox/value";
import { KnownBrowsers } from "../../src/account/sign-in/known-browsers.ts";
import type { Activity } from "../../src/core/activity.ts";
import { embeddedCatalog } from "../../src/core/catalog.ts";
import type { OperatorLine } from "../../src/console/api/line.ts";
import type { OperatorNode } from "../../src/console/api/nodes.ts";
import { BrowserAddresses } from "../../src/console/browser-addresses.ts";
import { consoleRoutes, openConsole } from "../../src/console/console.ts";
import { Live } from "../../src/console/live.ts";
import type { ConsoleParts } from "../../src/console/parts.ts";
import { type RouteShape, routes } from "../../src/console/api/routes.ts";
import type { Route } from "../../src/console/routes/route.ts";
import type { BackupOutcome } from "../../src/console/server-care.ts";
import type { ReloadOutcome } from "../../src/office/reloaded.ts";
import type { UsageQueries, UsageSummary } from "../../src/account/usage-queries.ts";
import type { LiveRequests, Site } from "../../src/http/site.ts";
import { CommandError } from "../../src/core/expected-error.ts";
import type { Fleet } from "../../src/office/work.ts";
import type { Log } from "../../src/core/log.ts";
import { Passwords } from "../../src/account/sign-in/passwords.ts";
import { Office } from "../account/office.ts";

export const baseUrl = "http://console.test";

const noUsage: UsageSummary = {
  days: [],
  total: { requests: 0, input: 0, cachedInput: 0, output: 0, reasoning: 0, billedTokens: 0 },
  models: [],
  endpoints: [],
  keys: [],
  endUsers: [],
};

const noFigures = {
  requests: [],
  answered: [],
  refused: [],
  failed: [],
  left: [],
  input: [],
  cachedInput: [],
  output: [],
  waitP50: [],
  waitP95: [],
  firstTokenP50: [],
  firstTokenP95: [],
};
const noActivity: Activity = { all: { steps: noFigures, total: noFigures }, series: [] };

const none = { interactive: 0, standard: 0, bulk: 0 };
const noLine: OperatorLine = {
  gateway: null,
  waiting: none,
  next: [],
  nodes: [],
  running: [],
  served: { account: [], class: [], model: [], node: [] },
};

export type Options = Partial<ConsoleParts> & Readonly<{ passwords?: Passwords }>;

export class ConsoleSite {
  readonly office: Office;
  readonly parts: ConsoleParts;
  readonly site: Site;
  readonly routes: readonly Route[];
  readonly logged: string[] = [];
  readonly node: OperatorNode = {
    name: "one",
    url: "http://gpu-1:8000/v1",
    health: "well",
    since: "2026-03-28T00:00:00.000Z",
    problem: null,
    last_error: null,
    engine: "vllm",
    version: null,
    abilities: [],
    below: [],
    context_tokens: 4_096,
    busy: 0,
    slots: 4,
    slots_auto: false,
    load: null,
    drained_since: null,
    line: { waiting: 0, accounts: 0, since: null, most: [] },
    first_token_p50_ms: null,
    first_token_p99_ms: null,
    tokens_per_second: 0,
    models: { "*": "*" },
  };
  inFlight = 0;
  /** What the next reload and the next backup come to. */
  reloaded: ReloadOutcome = { applied: [], needsRestart: [] };
  readonly backedUp = Promise.withResolvers<BackupOutcome>();

  constructor({ passwords, ...more }: Options = {}) {
    const office = new Office(undefined, passwords);
    this.office = office;
    const usage: UsageQueries = {
      page: () => Promise.resolve({ rows: [], next: null }),
      summary: () => Promise.resolve(noUsage),
      overTime: () => Promise.resolve({ steps: [], onlyDays: false }),
      report: () => Promise.resolve({ rows: [], cutsFoldedDay: false }),
      accounts: ({ text, page, pageRows }) => accountsPage(office, text, page, pageRows),
    };
    const log: Log = (_level, message, detail) => void this.logged.push(`${message} ${JSON.stringify(detail)}`);
    this.parts = {
      accountDeletion: "off",
      office: office.units,
      passwords: office.passwords,
      sessions: office.knownSessions,
      work: {
        office: office.units,
        passwords: office.passwords,
        consoleUrl: baseUrl,
        usage,
        requestLog: {
          page: () => Promise.reject(new Error("the console asks its own")),
          credits: () => Promise.resolve([]),
          nearLimit: () => Promise.resolve([]),
          lastAddresses: () => Promise.resolve(new Map()),
          erase: async () => {},
        },
        simulate: () => Promise.reject(new Error("the console asks nothing of it")),
        eraseResponses: async () => {},
        erasedInWords: "e-mail",
        backup: () => Promise.reject(new Error("the console makes its own")),
        fleet: this.#fleet(),
        mail: null,
      },
      usage,
      activity: {
        read: () => Promise.resolve(noActivity),
        totals: () => Promise.resolve([]),
        reasons: () => Promise.resolve([]),
      },
      requestLog: {
        page: () => Promise.resolve({ rows: [], next: null, searchedTo: null, gone: 0 }),
        credits: () => Promise.resolve([]),
        nearLimit: () => Promise.resolve([]),
        lastAddresses: () => Promise.resolve(new Map()),
      },
      conversations: null,
      reserved: office.ledger,
      alerts: { latest: [], list: () => Promise.resolve([]) },
      catalog: embeddedCatalog(),
      nodes: {
        states: () => [this.node],
        test: async (name) => ({ name, model: "core-3", first_token_ms: 12, took_ms: 15, problem: null }),
        models: () => [],
        line: async () => noLine,
        waiting: 0,
        had: () => () => true,
        takes: () => this.node.health === "well",
      },
      accountData: {
        export: async ({ email }) => new Response(JSON.stringify({ account: { email } })).body!,
      },
      configuration: {
        gateway: null,
        file: "tollgate.toml",
        loadedAt: office.now,
      },
      backups: {
        folder: "backups",
        freeBytes: () => 2_000_000_000,
        schedule: { everyMs: 86_400_000, keep: 7 },
        list: (max) => [{ name: "scheduled.db", bytes: max, madeAt: office.now }],
        make: () => this.backedUp.promise,
      },
      webhooks: { list: () => [] },
      payment: null,
      assets: () => Promise.resolve(new Map()),
      clock: { wall: () => office.now, monotonic: () => office.now },
      log,
      baseUrl,
      samplesUrl: null,
      signUp: false,
      passwordSignIn: true,
      oidc: null,
      machineTokens: { lifeMs: 86_400_000, secret: new Uint8Array(32) },
      addresses: new BrowserAddresses("x-test-address", log),
      browsers: new KnownBrowsers(new Uint8Array(32)),
      version: "0.0.0",
      demo: false,
      ...more,
    };
    const requests: LiveRequests = { openRequests: 0, openRequestsOf: () => this.inFlight };
    this.site = openConsole(this.parts, requests);
    this.routes = consoleRoutes(this.parts, new Live(this.parts, requests));
  }

  readonly config: Fleet["config"] = { show: unconfigured, edit: unconfigured, undo: unconfigured };

  #fleet(): Fleet {
    const setDrained = (name: string, drained: boolean) => {
      if (name !== this.node.name) throw new CommandError(`there is no node ${name}`);
      this.node.drained_since = drained ? this.node.since : null;
      return { name, drained, busy: 0 };
    };
    return {
      batches: null,
      config: this.config,
      nodes: () => [],
      models: () => ({}),
      gateways: async () => [],
      drain: (name) => setDrained(name, true),
      resume: (name) => setDrained(name, false),
      reload: () => Promise.resolve(this.reloaded),
      health: () => ({ unready: null, nodes: null }),
      async testWebhook(name) {
        if (name !== "ops") throw new CommandError(`there is no webhook ${name}`);
        return "it answered 500";
      },
    };
  }

  /** Any request, with nothing added to it. */
  send(path: string, init: RequestInit = {}): Promise<Response> {
    return this.site.routes.handle(new Request(baseUrl + path, init));
  }

  /** A browser that nobody is signed in on. */
  browser(address = "192.0.2.1"): ConsoleBrowser {
    return new ConsoleBrowser(this, address);
  }

  /** A new account, signed in. */
  async signedIn(email: string, more: { operator?: boolean; plan?: string } = {}): Promise<ConsoleBrowser> {
    const account = await this.office.accounts.create({ email, password: "correct horse", ...more });
    const browser = this.browser();
    browser.account = account;
    const { status } = await browser.post("/sign-in", { email, password: "correct horse" });
    if (status !== 200) throw new Error(`signed in with ${status}`);
    return browser;
  }
}

/** Throws where a reply is not what the contract says, down to a field that it does not name. */
function checkReply(call: string, body: unknown): void {
  const name = call.replace(/\?.*/, "").replace(/\/\d+(?=\/|$)/, "/:id");
  const { reply }: RouteShape = routes[name as keyof typeof routes];
  if (reply === null) return;
  const [error] = [...Value.Errors(reply, body)];
  if (error !== undefined) throw new Error(`${name} replied ${error.path}: ${error.message}`);
  const stated = Value.Clean(reply, structuredClone(body));
  if (!Bun.deepEquals(stated, body)) throw new Error(`${name} replied fields that the contract does not name`);
}

export type Reply = Readonly<{ status: number; body: any; response: Response }>;

/** Keeps its cookies and sends its Origin, as browsers do. */
export class ConsoleBrowser {
  /** Of its session. */
  cookie = "";
  /** Of where it signed in before. */
  known = "";
  /** Of a sign-in with a provider that began. */
  begun = "";
  account: Readonly<{ id: number; email: string; api_key: string }> = { id: 0, email: "", api_key: "" };

  constructor(
    readonly console: ConsoleSite,
    readonly address: string,
  ) {}

  get(path: string): Promise<Reply> {
    return this.#send(path, { method: "GET" });
  }

  post(path: string, body?: object): Promise<Reply> {
    const headers = { origin: baseUrl, ...(body === undefined ? {} : { "content-type": "application/json" }) };
    return this.#send(path, { method: "POST", headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
  }

  async #send(path: string, init: RequestInit): Promise<Reply> {
    const response = await this.console.send(`/console/api${path}`, {
      ...init,
      headers: {
        ...(init.headers as object),
        cookie: [this.cookie, this.known, this.begun].filter((cookie) => cookie !== "").join("; "),
        "x-test-address": this.address,
      },
    });
    for (const set of response.headers.getSetCookie()) {
      const cookie = set.split(";")[0]!;
      if (cookie.includes("tollgate_browser=")) this.known = cookie;
      else if (cookie.includes("tollgate_provider=")) this.begun = cookie;
      else this.cookie = cookie;
    }
    const isJson = response.headers.get("content-type")?.startsWith("application/json") === true;
    const body = isJson ? await response.json() : null;
    if (response.status === 200) checkReply(`${init.method} ${path}`, body);
    return { status: response.status, body, response };
  }
}

const unconfigured = (): never => {
  throw new CommandError("there is no configuration file");
};

/** As the stores answer it, without what was used. */
async function accountsPage(office: Office, text: string, page: number, pageRows: number) {
  const found = (await office.accounts.list()).filter(({ email }) => email.includes(text));
  const rows = found.slice((page - 1) * pageRows, page * pageRows).map((account) => ({
    ...account,
    costCenter: null,
    teams: null,
    activeAt: null,
    today: 0,
    todayTokens: 0,
    month: 0,
    monthTokens: 0,
    limit: 0,
  }));
  return { rows, total: found.length, page };
}
