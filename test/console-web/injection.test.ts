// Texts of strangers (a model's answer, a tool's name, an e-mail address, an id) are shown as texts: 200 payloads in
// every place where the console shows one run nothing and fetch nothing, even without the content security policy.
import { eachCount } from "../../src/core/count-limits.ts";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Browser, Page } from "playwright-core";
import type { BrowserSessions } from "../../src/console/api/account.ts";
import type { AccountUse, AccountsPage, Invitations, OperatorAccount } from "../../src/console/api/accounts.ts";
import type { AccountKeys, KeyState } from "../../src/console/api/keys.ts";
import type { AccountNumbers } from "../../src/console/api/live.ts";
import type { MailState } from "../../src/console/api/mail.ts";
import type { OperatorModels, OperatorNodes } from "../../src/console/api/nodes.ts";
import type { ConsoleModels, Overview } from "../../src/console/api/overview.ts";
import type { PlanPage, PurchaseRequest, PurchaseRequestsPage } from "../../src/console/api/plan.ts";
import type { LogPage, RefusalsPage } from "../../src/console/api/request-log.ts";
import type { ActivityFigures, OverTime } from "../../src/console/api/over-time.ts";
import type { AuditPage, OperatorServer, OperatorTotals } from "../../src/console/api/server.ts";
import type { Member, Team } from "../../src/console/api/teams.ts";
import type { Session } from "../../src/console/api/sign-in.ts";
import type { UsagePage, UsageRow, UsageSummary } from "../../src/console/api/usage.ts";
import { GatewayProcess } from "../fixtures/gateway-process.ts";
import { longForm } from "../fixtures/optional.ts";
import { launch, Visit, withoutBrowser } from "./browser.ts";
import { payloads } from "./payloads.ts";

const timeLimit = 300_000;
/** Each takes an answer of its own, a fifth of a second: all of them in the long form. */
const tried = longForm ? payloads : payloads.filter((_, index) => index % 5 === 0);
const time = "2026-03-28T12:00:00.000Z";

describe.skipIf(withoutBrowser)("texts of strangers", () => {
  let gateway: GatewayProcess;
  let browser: Browser;

  beforeAll(async () => {
    [gateway, browser] = await Promise.all([GatewayProcess.start({ config: "" }), launch()]);
  }, timeLimit);
  afterAll(async () => {
    await browser?.close();
    await gateway?.[Symbol.asyncDispose]();
  }, timeLimit);

  test(
    "there are 200 payloads, and a page that takes them for HTML is caught",
    async () => {
      expect(new Set(payloads).size).toBe(200);
      await using visit = await openHostile(browser, gateway.url);
      await visit.page.goto("/");
      const texts = payloads.filter((text) => !text.includes("<meta")); // it would leave the page
      await visit.page.evaluate(`for (const text of ${JSON.stringify(texts)}) {
        const element = document.createElement("div");
        element.innerHTML = text;
        document.body.append(element);
      }`);
      await visit.page.waitForFunction("hits > 5");
      expect(visit.problems.filter((problem) => problem.includes("evil.invalid")).length).toBeGreaterThan(5);
    },
    timeLimit,
  );

  test(
    "accounts, models, requests, notes, nodes and the audit log",
    async () => {
      await using visit = await openHostile(browser, gateway.url);
      const { page } = visit;
      for (const [path, wanted] of [
        ["/", 10],
        ["/usage", payloads.length],
        ["/key", 1],
        ["/plan", payloads.length],
        ["/team", payloads.length],
        ["/account", payloads.length],
        ["/playground", payloads.length],
        ["/operator", 100],
        ["/operator/accounts", payloads.length],
        ["/operator/requests", payloads.length],
        ["/operator/nodes", payloads.length],
        ["/operator/models", 50],
        ["/operator/server", 1],
        ["/operator/audit", payloads.length],
        ["/operator/log", payloads.length],
      ] as const) {
        await page.goto(path);
        await page.locator(".side .who").waitFor();
        await page.locator(".loading").first().waitFor({ state: "detached" });
        if (path !== "/key" && path !== "/operator/server") {
          const shown = page.locator("main tbody tr, main .item-list > li, main option");
          await shown.nth(Math.min(wanted, 50) - 1).waitFor({ state: "attached" });
        }
        const next = page.locator(".table-foot button:enabled:nth-child(3)");
        for (; ; await next.first().click()) {
          await expectHarmless(visit, path);
          if ((await next.count()) === 0) break;
        }
      }
      await page.goto("/operator/accounts/someone");
      await page.getByRole("button", { name: "Set password" }).waitFor();
      await page.getByRole("region", { name: "End users, 30 days" }).waitFor();
      await expectHarmless(visit, "account sheet");
      await page.goto("/usage");
      await page.locator("tbody button").first().click();
      await page.getByRole("dialog").waitFor();
      await expectHarmless(visit, "request");
      await page.keyboard.press("Escape");
      await page.keyboard.press("Control+k");
      await page.getByRole("combobox", { name: "Go to a page" }).fill("hit(1)");
      await page.getByRole("dialog").getByRole("option").nth(9).waitFor();
      await expectHarmless(visit, "palette");
      await page.goto("/operator/log");
      await page.locator("tbody .row-button").first().click();
      await page.getByRole("dialog").waitFor();
      await expectHarmless(visit, "request of the log");
    },
    timeLimit,
  );

  test(
    "a model's text, its reasoning, its tools, its searches and its sources, in each dialect",
    async () => {
      await using visit = await openHostile(browser, gateway.url);
      const { page } = visit;
      let next = 0;
      let payloadsAsked = 0;
      await page.route("**/v1/**", (route) => {
        const payload = tried[next++ % tried.length] ?? "";
        const endpoint = new URL(route.request().url()).pathname;
        return route.fulfill({
          status: 200,
          headers: { "content-type": "text/event-stream", "x-request-id": payload.replaceAll(/[^\x20-\x7e]/g, "") },
          body: streamOf(endpoint, payload),
        });
      });
      await page.setViewportSize({ width: 1480, height: 860 }); // the settings stand beside it
      await page.goto("/playground");
      for (const [place, dialect] of ["chat-completions", "messages", "responses"].entries()) {
        await page.getByLabel("Dialect").selectOption(dialect);
        for (const payload of tried.filter((_, index) => index % 3 === place)) {
          await page.getByLabel("Message", { exact: true }).fill(payload);
          await page.getByRole("button", { name: "Send", exact: true }).click();
          await page.locator(".turn-foot").waitFor();
          await expectHarmless(visit, `${dialect}: ${payload}`);
          await page.getByRole("button", { name: "New conversation" }).click();
          // A message that is written before the last conversation is gone would go with it.
          await page.locator(".turn-foot").waitFor({ state: "detached" });
          const kept = page.locator(".kept-list li");
          await kept.nth(payloadsAsked++).waitFor({ state: "attached" });
        }
        await page.getByLabel("Message", { exact: true }).fill(tried.join(" "));
        await page.getByRole("button", { name: "Send", exact: true }).click();
        await page.locator(".turn-foot").waitFor();
        await page.getByRole("button", { name: "Show the request as code" }).click();
        await page.getByRole("dialog").locator("pre").waitFor();
        await expectHarmless(visit, `${dialect} as code`);
        await page.keyboard.press("Escape");
        await page.getByRole("button", { name: "New conversation" }).click();
        // Its foot is no sign that the next one's answer is there.
        await page.locator(".turn-foot").waitFor({ state: "detached" });
      }
      expect(next).toBe(tried.length + 3);
    },
    timeLimit,
  );

  test(
    "an error's message and a stream's error",
    async () => {
      await using visit = await openHostile(browser, gateway.url);
      const { page } = visit;
      const message = payloads.join(" ");
      await page.route("**/v1/**", (route) => route.fulfill({ status: 400, json: { error: { message } } }));
      await page.goto("/playground");
      await page.getByLabel("Message", { exact: true }).fill("x");
      await page.getByRole("button", { name: "Send", exact: true }).click();
      await page.getByRole("alert").waitFor();
      await page.route("**/console/api/usage**", (route) =>
        route.fulfill({ status: 500, json: { error: { message } } }),
      );
      await page.goto("/usage");
      await page.getByRole("alert").first().waitFor();
      await expectHarmless(visit, "errors");
    },
    timeLimit,
  );
});

/** A visit without the policy's protection, whose server says nothing but payloads. */
async function openHostile(browser: Browser, url: string): Promise<Visit> {
  const visit = await Visit.open(browser, url, { bypassCSP: true });
  await visit.context.addInitScript({ content: "globalThis.hits = 0; globalThis.hit = () => hits++;" });
  await visit.context.route(/evil\.invalid/, (route) => route.abort());
  await answerWithPayloads(visit.page);
  return visit;
}

/** Runs in the page: how often a payload ran, and which elements and links no text of a stranger may become. */
const inspection = `({
  hits,
  strange: [...document.querySelectorAll("main *, dialog *")]
    .filter(
      (element) =>
        /^(script|iframe|img|video|audio|object|embed|link|style|base|meta|template|marquee|math)$/i.test(element.tagName) ||
        [...element.attributes].some(({ name }) => /^on/i.test(name)) ||
        (element instanceof HTMLAnchorElement && !/^https?:$/.test(element.protocol)),
    )
    .map((element) => element.outerHTML.slice(0, 200)),
  unsafeLinks: [...document.querySelectorAll("main a, dialog a")]
    .filter(({ origin, rel }) => origin !== location.origin && !rel.includes("noopener"))
    .map(({ href }) => href),
})`;

async function expectHarmless({ page, problems }: Visit, where: string): Promise<void> {
  const found = await page.evaluate<object>(inspection);
  expect<object>({
    where,
    ...found,
    problems: problems.filter((problem) => !/status of (?:400|500)/.test(problem)),
  }).toEqual({
    where,
    hits: 0,
    strange: [],
    unsafeLinks: [],
    problems: [],
  });
}

// ---------------------------------------------------------------- what the hostile server says

async function answerWithPayloads(page: Page): Promise<void> {
  const replies: Readonly<Record<string, unknown>> = {
    "/session": session,
    "/overview": overview,
    "/models": models,
    "/key": { prefix: payloads[0] ?? "", ending: payloads[0] ?? "", created_at: time } satisfies KeyState,
    "/keys": accountKeys,
    "/usage": { rows: payloads.map(usageRow), next: null } satisfies UsagePage,
    "/usage/summary": summary,
    "/use": accountUse,
    "/operator/account": operatorAccount,
    "/plan": plan,
    "/sessions": sessions,
    "/mail": { address: payloads.join(" "), kinds: [], choices: [], proof: "password" } satisfies MailState,
    "/operator/accounts": {
      accounts: payloads.map(accountRow),
      total: 50,
      page: 1,
    } satisfies AccountsPage,
    "/operator/invitations": invitations,
    "/teams": { teams: payloads.map((name, id) => ({ id, name, role: "admin", plan: name, disabled: true })) },
    "/teams/0": team,
    "/operator/nodes": { nodes, waiting: 0, gateway: payloads[0]! } satisfies OperatorNodes,
    "/operator/models": operatorModels,
    "/operator/totals": totals,
    "/over-time": overTime,
    "/operator/requests": { requests: payloads.map(purchase), next: null } satisfies PurchaseRequestsPage,
    "/operator/server": server,
    "/operator/audit": audit,
    "/operator/log": requestLog,
    "/refusals": ownRefusals,
  };
  await page.route("**/console/api/**", (route) => {
    const path = new URL(route.request().url()).pathname.slice("/console/api".length);
    if (path === "/events")
      return route.fulfill({ headers: { "content-type": "text/event-stream" }, body: ": none\n\n" });
    const of = /^\/operator\/accounts\/\d+(\/(?:keys|sessions|use))$/.exec(path)?.[1];
    return route.fulfill({ json: replies[of ?? path] });
  });
}

const numbers: AccountNumbers = {
  spendable: 30_000,
  allowance: { granted: 30_000, left: 30_000, renews_at: time },
  credit: 0,
  reserved: { tokens: 0, requests: 0 },
  requests_in_flight: 0,
  coder_calls: { left: 3, limit: 3, renews_at: time },
  searches: { left: 3, limit: 3, renews_at: time },
};

const session: Session = {
  account: {
    id: 1,
    email: payloads.join(" "),
    plan: "free",
    operator: true,
    password: true,
    connected: false,
    team: true,
    language: null,
  },
  sign_up: true,
  passwords: true,
  mail: true,
  provider: payloads.join(" "),
  version: payloads.join(" "),
  base_url: payloads.join(" "),
  demo: true,
  sells: true,
  plans: payloads.slice(0, 2).map((name) => ({ id: "free", name })),
};

const usageRow = (payload: string, index: number): UsageRow => ({
  time,
  request_id: `${index} ${payload}`,
  endpoint: payload,
  model: payload,
  input: 1,
  cached_input: 0,
  output: 1,
  reasoning: 0,
  billed_tokens: 1,
  cost_usd: 0.000005,
  estimated: true,
  key: payloads[0]!,
  end_user: payload,
});

const overview: Overview = {
  plan: { id: "free", name: payloads.join(" ") },
  numbers,
  last_requests: payloads.slice(0, 10).map(usageRow),
  spend: { today_tokens: 0, today_usd: 0, days30_tokens: 0, days30_usd: 0 },
};

const models: ConsoleModels = {
  models: payloads.map((id) => ({
    id,
    kind: "chat",
    context_tokens: 196_608,
    reads_images: true,
    reads_audio: false,
    output_tokens: null,
    structured_output: "json_schema",
    price: { input_cents: 1, cached_input_cents: 1, output_cents: 1 },
    flat_price: false,
    coder: false,
    usable: true,
    served: true,
    available: true,
  })),
  sample: { id: payloads[0]!, context_tokens: 196_608 },
};

const sum = { requests: 1, input: 1, cached_input: 0, output: 1, reasoning: 0, billed_tokens: 1, cost_usd: 0.000005 };

const summary: UsageSummary = {
  from: "2026-02-27T00:00:00.000Z",
  days: payloads.map((model) => ({ day: "2026-03-28", model, ...sum })),
  days30: sum,
  all_time: sum,
  models: [...payloads],
  endpoints: [...payloads],
  keys: payloads.map((name, index) => ({ id: index, name, ending: name })),
  end_users: payloads.map((name) => ({ name, key: name, ...sum })),
};

const accountUse: AccountUse = {
  today: sum,
  month: sum,
  models: payloads.map((model) => ({ model, today: sum, days30: sum })),
  end_users: payloads.map((name) => ({ name, key: name, limit_day: 1, ...sum })),
};

const requestLog: LogPage = {
  rows: payloads.map((payload, index) => ({
    time,
    request_id: `${payload}${index}`,
    account: payload,
    account_id: 1,
    key: payload,
    endpoint: payload,
    model: payload,
    asked_model: payload,
    tags: payload,
    cost_center: payload,
    address: payload,
    priority: payload,
    node: payload,
    status: 500,
    reason: payload,
    why: payload,
    cause: payload,
    wait_ms: 1,
    sent_ms: 2,
    first_token_ms: 3,
    duration_ms: 4,
    input: 1,
    cached_input: 1,
    output: 1,
    reasoning: 1,
    billed_tokens: 1,
    cost_usd: 1,
    sum: payload,
    more: 1,
  })),
  next: null,
  searched_to: time,
  gone: 1,
  models: [...payloads],
  nodes: [...payloads],
  reasons: [...payloads],
};

const ownRefusals: RefusalsPage = {
  rows: payloads.map((payload, index) => ({
    time,
    request_id: `${payload}${index}`,
    endpoint: payload,
    model: payload,
    key: payload,
    status: 429,
    reason: payload,
    why: payload,
    more: 1,
  })),
  next: null,
};

const purchase = (payload: string, id: number): PurchaseRequest => ({
  id,
  account: { id: 1, email: payload },
  kind: "credit",
  tokens: 1_000_000,
  plan: null,
  note: payload,
  state: "pending",
  created_at: time,
  decided_at: null,
  decision_note: payload,
});

const plan: PlanPage = {
  plan: "free",
  plans: [
    {
      id: "plus",
      name: payloads.join(" "),
      tokens_per_day: 1,
      worth_usd: 1,
      unlimited: false,
      coder_calls_per_window: 1,
      searches_per_day: 1,
      ...eachCount(() => null),
      batch_discount: 0,
      priority: "standard",
      priority_max: "standard",
    },
  ],
  packs: [{ tokens: 1_000_000, price_usd: 5 }],
  custom: { min_tokens: 1_000_000, max_tokens: 100_000_000, usd_per_million: 5 },
  credit: 0,
  payment: payloads.join(" "),
  requests: payloads.map(purchase),
  payments: [],
};

const member: Member = {
  id: 1,
  email: payloads.join(" "),
  role: "admin",
  limit_day: 1_000,
  limit_month: 1_000,
  used_day: 1,
  used_month: 1,
  joined_at: time,
};
const accountKeys: AccountKeys = {
  prefix: payloads[0] ?? "",
  keys: payloads.map((payload, index) => ({
    id: index + 2,
    name: payload,
    ending: payload,
    created_at: time,
    last_used_at: time,
    expires_at: time,
    expired: false,
    limit_day: 1_000,
    limit_month: 1_000,
    used_day: 1,
    used_month: 1,
    models: [payload],
    addresses: [payload],
    forwards_users: true,
    limit_end_user_day: 1_000,
    weight: 2,
    priority: "standard",
    priority_max: "interactive",
    parallel: 1,
    requests_per_minute: 1,
    end_user_parallel: 2,
    end_user_requests_per_minute: 30,
    end_user_tokens_per_minute: 5_000,
    tokens_per_minute: 1_000,
    machine: true,
    member: payload,
    cost_center: payload,
  })),
};

const team: Team = {
  id: 0,
  name: payloads.join(" "),
  plan: payloads.join(" "),
  disabled: false,
  allowance: { granted: 5, left: 5 },
  credit: 5,
  spendable: 5,
  own: { member, keys: accountKeys.keys },
  managed: {
    members: [member],
    keys: accountKeys.keys,
    invitations: payloads.map((email, id) => ({ id, email, limit_day: 1, limit_month: 2, expires_at: time })),
  },
};

const invitations: Invitations = {
  invitations: payloads.map((payload, id) => ({
    id,
    email: payload,
    plan: payload,
    credit: 1,
    created_at: time,
    expires_at: time,
  })),
};

const sessions: BrowserSessions = {
  sessions: payloads.map((payload, id) => ({
    id,
    created_at: time,
    last_used_at: time,
    address: payload,
    browser: payload,
    current: false,
  })),
};

const accountOf = (email: string, id: number) => ({
  id,
  email,
  plan: "free",
  credit: 0,
  operator: true,
  team: false,
  disabled: false,
  created_at: time,
});
const accountRow = (email: string, id: number): AccountsPage["accounts"][number] => ({
  ...accountOf(email, id),
  cost_center: email,
  teams: email,
  active_at: time,
  today: 0,
  month: 0,
  today_tokens: 0,
  month_tokens: 0,
  limit: 1,
});

const operatorAccount: OperatorAccount = {
  ...accountOf(payloads.join(" "), 0),
  key_created_at: time,
  has_password: true,
  mail_address: payloads[0]!,
  providers: [...payloads],
  numbers,
  cost_center: payloads.join(" "),
  teams: payloads.map((name, id) => ({ id, name, role: name })),
};

const nodes: OperatorNodes["nodes"] = payloads.map((payload) => ({
  name: payload,
  url: payload,
  health: "well",
  since: time,
  problem: payload,
  last_error: { at: time, message: payload },
  version: payload,
  abilities: [{ name: payload, context_tokens: 1, words: payload }],
  below: [payload],
  context_tokens: 1,
  engine: payload,
  busy: 0,
  slots: 1,
  slots_auto: true,
  load: payload,
  drained_since: time,
  line: { waiting: 2, accounts: 1, since: time, most: [{ id: 1, email: payload, waiting: 1 }] },
  first_token_p50_ms: null,
  first_token_p99_ms: null,
  tokens_per_second: 0,
  models: { [payload]: payload },
}));

const operatorModels: OperatorModels = {
  models: payloads.map((payload) => ({
    id: payload,
    aliases: [payload],
    by: payload,
    kind: payload,
    hidden: true,
    nodes: [payload],
    missing: null,
    up: true,
    price: null,
    context_tokens: 1,
    plans: [payload],
    below: [payload],
    day: { requests: 1, failed: 1, input: 1, output: 1, first_token_p50_ms: 1 },
  })),
};

const one = [1];
const figures: ActivityFigures = {
  requests: one,
  answered: one,
  refused: one,
  failed: one,
  left: one,
  input: one,
  cached_input: one,
  output: one,
  wait_p50_ms: one,
  wait_p95_ms: one,
  first_token_p50_ms: one,
  first_token_p95_ms: one,
};
const overTime: OverTime = {
  from: time,
  until: "2026-11-11T00:00:00.000Z",
  range: "30d",
  step_ms: 3_600_000,
  total: sum,
  before: sum,
  parts: payloads.map((label) => ({ name: label, label, ...sum })),
  series: payloads
    .slice(0, 6)
    .map((label) => ({ name: label, label, requests: one, input: one, output: one, billed_tokens: one })),
  course: {
    steps: figures,
    total: figures,
    series: payloads.slice(0, 6).map((label) => ({ label, steps: figures })),
  },
  reasons: payloads.map((reason) => ({ reason, status: 400, requests: 1 })),
};

const totals: OperatorTotals = {
  alerts: payloads.map((name) => ({
    kind: "node",
    about: name,
    values: { name, problem: name },
    path: "/operator/nodes",
  })),
  accounts: 1,
  requests_in_flight: 0,
  reserved_tokens: 0,
  pending_purchase_requests: 0,
};

const server: OperatorServer = {
  started_at: "2026-11-20T08:00:00.000Z",
  gateway: payloads.join(" "),
  config_file: payloads.join(" "),
  config_loaded_at: time,
  reload: { time, refused: payloads.join(" "), applied: [], needs_restart: [] },
  backup_folder: payloads.join(" "),
  disk_free_bytes: 1,
  backup: {
    state: "failed",
    started_at: time,
    file: payloads.join(" "),
    bytes: 0,
    duration_ms: 0,
    message: payloads.join(" "),
  },
  backup_schedule: null,
  backups: payloads.map((file) => ({ file, bytes: 1, made_at: time })),
  webhooks: payloads.map((payload) => ({
    name: payload,
    host: payload,
    format: payload,
    signed: true,
    events: [payload],
    sent: 1,
    failed: 1,
    dropped: 1,
    waiting: 1,
    last_sent_at: time,
    problem: payload,
  })),
};

const audit: AuditPage = {
  entries: payloads.map((payload, id) => ({
    id,
    time,
    operator: payload,
    address: payload,
    action: payload,
    subject: payload,
    detail: payload,
  })),
  total: 50,
  page: 1,
};

/** A whole answer in which everything that a model or a search says is the payload. */
function streamOf(endpoint: string, payload: string): string {
  const source = { url: payload, title: payload };
  const events: readonly object[] =
    endpoint === "/v1/messages"
      ? [
          { type: "content_block_start", content_block: { type: "thinking" } },
          { type: "content_block_delta", delta: { type: "thinking_delta", thinking: payload } },
          { type: "content_block_start", content_block: { type: "server_tool_use", name: "web_search" } },
          {
            type: "content_block_delta",
            delta: { type: "input_json_delta", partial_json: JSON.stringify({ query: payload }) },
          },
          { type: "content_block_stop" },
          { type: "content_block_start", content_block: { type: "web_search_tool_result", content: [source] } },
          {
            type: "content_block_start",
            content_block: { type: "mcp_tool_use", id: payload, name: payload, server_name: payload },
          },
          { type: "content_block_delta", delta: { type: "input_json_delta", partial_json: payload } },
          {
            type: "content_block_start",
            content_block: {
              type: "mcp_tool_result",
              tool_use_id: payload,
              content: [{ type: "text", text: payload }],
            },
          },
          { type: "content_block_start", content_block: { type: "text" } },
          { type: "content_block_delta", delta: { type: "text_delta", text: payload } },
          { type: "content_block_start", content_block: { type: "tool_use", id: payload, name: payload } },
          {
            type: "content_block_delta",
            delta: { type: "input_json_delta", partial_json: JSON.stringify({ argument: payload }) },
          },
          { type: "message_delta", delta: { stop_reason: payload }, usage: { output_tokens: 1 } },
          { type: "message_stop" },
        ]
      : endpoint === "/v1/responses"
        ? [
            { type: "response.reasoning_summary_text.delta", delta: payload },
            { type: "response.output_item.done", item: { type: "web_search_call", action: { query: payload } } },
            {
              type: "response.output_item.added",
              item: { type: "mcp_call", id: payload, name: payload, server_label: payload },
            },
            { type: "response.mcp_call_arguments.delta", delta: payload },
            { type: "response.output_item.done", item: { type: "mcp_call", id: payload, output: payload } },
            { type: "response.output_text.delta", delta: payload },
            { type: "response.output_text.annotation.added", annotation: source },
            { type: "response.output_item.added", item: { type: "function_call", call_id: payload, name: payload } },
            { type: "response.function_call_arguments.delta", delta: payload },
            { type: "response.completed", response: { status: payload, usage: {} } },
          ]
        : [
            { choices: [{ delta: { reasoning_content: payload } }] },
            { choices: [{ delta: { content: payload } }] },
            {
              choices: [
                { delta: { tool_calls: [{ index: 0, id: payload, function: { name: payload, arguments: payload } }] } },
              ],
            },
            { choices: [{ delta: { annotations: [{ type: "url_citation", url_citation: source }] } }] },
            { choices: [{ delta: {}, finish_reason: payload }] },
          ];
  return `${events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("")}data: [DONE]\n\n`;
}
