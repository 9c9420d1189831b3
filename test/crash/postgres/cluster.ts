// Whole gateways on one PostgreSQL under load, each behind a network of its own that can fail, and what their clients saw. Who
// saw the end of a reply has one charge, who saw a failure has none, who was broken off has one at most.
import { appendFileSync, rmSync } from "node:fs";
import { Database } from "../../../src/store/postgres/database.ts";
import { openServer } from "../../../src/store/postgres/start.ts";
import { verifyBooks } from "../../../src/store/postgres/verify.ts";
import { boundsOf } from "../../../src/store/verify/quota-bounds.ts";
import { plans } from "../../account/office.ts";
import { bodyOf, budgetField, type ToldUsage, viewOf } from "../../fixtures/client-view.ts";
import { eventually } from "../../fixtures/eventually.ts";
import { GatewayProcess } from "../../fixtures/gateway-process.ts";
import { PostgresProxy } from "../../fixtures/postgres-proxy.ts";
import { TestPostgres } from "../../fixtures/postgres.ts";
import { nodeTable } from "../../fixtures/stack.ts";

/** `cut`: the connection broke off, or never came about. */
type Outcome = "end" | "failed" | "cut" | "not connected";
/** What a client knows of its request; `why` is the answer of one that failed. */
export type Seen = Readonly<{
  number: number;
  outcome: Outcome;
  gateway: number;
  /** Where the reply's head arrived. */
  id: string | null;
  usage: ToldUsage | null;
  why: string;
  startedAt: number;
  endedAt: number;
}>;
export type Asker = Readonly<{ email: string; key: string }>;

/** What each request is told it used, and by which its charge is known: no two numbers below 27,000,000 have the same. */
const usageOf = (number: number) => ({
  cached: Math.floor(number / 300) % 300,
  input: 300 + (number % 300),
  output: 400,
  reasoning: Math.floor(number / 90_000) % 300,
});
const numberOf = (input: number, cached: number, reasoning: number): number =>
  reasoning * 90_000 + cached * 300 + (input - 300);

/** What a request holds; it costs 67 hundredths of its tokens. */
const holdTokens = 1_000;
/** Costs what it holds. */
const exactUsage = { input: 9_000, output: 1_000 };
export const exactTokens = 6_700;
const model = "core-3";
const ways = [
  ["/v1/chat/completions", true],
  ["/v1/chat/completions", false],
  ["/v1/messages", true],
  ["/v1/messages", false],
] as const;

type Node = Readonly<{ url: string; stop(): void }>;

/** Answers a prompt with [[number]] with that number's usage, over up to `longestMs`. */
function startNode(longestMs: number): Node {
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 255,
    async fetch(request) {
      const { pathname } = new URL(request.url);
      if (pathname.endsWith("/models")) {
        return Response.json({ object: "list", data: [{ id: "scripted", object: "model", owned_by: "vllm" }] });
      }
      if (!pathname.endsWith("/chat/completions")) return new Response("none", { status: 404 });
      const body = await request.text();
      const [, digits, exact] = /\[\[(\d+)(x?)\]\]/.exec(body) ?? [];
      const number = Number(digits ?? 0);
      const used = exact === "x" ? { ...exactUsage, cached: 0, reasoning: 0 } : usageOf(number);
      const usage = {
        prompt_tokens: used.input,
        completion_tokens: used.output,
        total_tokens: used.input + used.output,
        prompt_tokens_details: { cached_tokens: used.cached },
        completion_tokens_details: { reasoning_tokens: used.reasoning },
      };
      const pieces = 2 + (number % 5);
      const waitMs = ((number * 7_919) % longestMs) / pieces;
      const event = (delta: object, finish: string | null) =>
        `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "scripted", choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
      async function* stream() {
        yield event({ role: "assistant", content: "" }, null);
        for (let piece = 0; piece < pieces; piece++) {
          await Bun.sleep(waitMs);
          yield event({ content: `piece ${piece} ` }, null);
        }
        yield event({}, "stop");
        yield `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "scripted", choices: [], usage })}\n\ndata: [DONE]\n\n`;
      }
      return new Response(stream() as unknown as ReadableStream<Uint8Array>, {
        headers: { "content-type": "text/event-stream" },
      });
    },
  });
  return { url: `http://127.0.0.1:${server.port}/v1`, stop: () => void server.stop(true) };
}

export class Cluster implements AsyncDisposable {
  readonly seen: Seen[] = [];
  readonly faults = new Map<string, number>();
  readonly proxies: PostgresProxy[] = [];
  readonly gateways: GatewayProcess[] = [];
  postgres: TestPostgres;
  readonly #node: Node;
  readonly #random: () => number;
  #number = 0;
  /** Requests that each client sent and that have no outcome yet. */
  open = 0;

  private constructor(postgres: TestPostgres, node: Node, random: () => number) {
    this.postgres = postgres;
    this.#node = node;
    this.#random = random;
  }

  static async start(count: number, random: () => number, longestMs = 600): Promise<Cluster> {
    const postgres = await TestPostgres.start();
    await postgres.database("books");
    const cluster = new Cluster(postgres, startNode(longestMs), random);
    for (let index = 0; index < count; index++) {
      const proxy = new PostgresProxy(postgres.port);
      cluster.proxies.push(proxy);
      const name = `g${index}`;
      cluster.gateways.push(
        await GatewayProcess.start({
          config: `[ledger]\ngateway = "${name}"\n${nodeTable(cluster.#node, 64)}`,
          env: { TOLLGATE_DATABASE_URL: postgres.url("books", proxy.port) },
          dataFolder: `${postgres.folder}-${name}`,
        }),
      );
    }
    return cluster;
  }

  below(limit: number): number {
    return Math.floor(this.#random() * limit);
  }

  count(fault: string): void {
    this.faults.set(fault, (this.faults.get(fault) ?? 0) + 1);
  }

  async askers(count: number, credit = 1_000_000_000): Promise<Asker[]> {
    const askers: Asker[] = [];
    for (let index = 0; index < count; index++) {
      const gateway = this.gateways[index % this.gateways.length]!;
      const { email, api_key } = await gateway.account(credit, index % 2 === 0 ? "free" : "pro");
      // Sums of named keys and of end users are part of the same transactions.
      const limits = { limit_day: 1e9, limit_month: 2e9, forwards_users: index % 4 === 1 };
      const named = index % 2 === 0 ? null : await gateway.makeKey(email, { name: "named", ...limits });
      askers.push({ email, key: named?.api_key ?? api_key });
    }
    return askers;
  }

  /** One request; what became of it is kept. `exact`: one that costs `exactTokens`, of which nothing is kept. */
  async ask(asker: Asker, gateway = this.below(this.gateways.length), exact = false): Promise<Seen> {
    const number = (this.#number += 1);
    const [endpoint, stream] = ways[number % ways.length]!;
    const startedAt = performance.now();
    this.open += 1;
    let id: string | null = null;
    const over = (outcome: Outcome, why: string, usage: ToldUsage | null = null): Seen => {
      this.open -= 1;
      const one = { number, outcome, gateway, id, usage, why, startedAt, endedAt: performance.now() };
      if (!exact) this.seen.push(one);
      return one;
    };
    const naming =
      number % 3 === 0 ? {} : endpoint === "/v1/messages" ? { metadata: { user_id: "u" } } : { user: `u${number % 7}` };
    const prompt = `hello [[${number}${exact ? "x" : ""}]]`;
    const more = { stream, [budgetField[endpoint]]: exact ? exactTokens : holdTokens, ...naming };
    let reply: Response;
    try {
      reply = await fetch(this.gateways[gateway]!.url + endpoint, {
        method: "POST",
        keepalive: false,
        timeout: false,
        headers: { authorization: `Bearer ${asker.key}`, connection: "close" },
        body: JSON.stringify(bodyOf(endpoint, model, prompt, more)),
      } as RequestInit);
    } catch (thrown) {
      const { code } = thrown as { code?: string };
      return over(
        code === "ConnectionRefused" || code === "ECONNREFUSED" ? "not connected" : "cut",
        `no head: ${code}`,
      );
    }
    id = reply.headers.get("x-request-id");
    let body = "";
    let broke: string | null = null;
    try {
      const decoder = new TextDecoder();
      for await (const bytes of reply.body ?? []) body += decoder.decode(bytes, { stream: true });
    } catch (thrown) {
      broke = String((thrown as { code?: string }).code);
    }
    const isStream = stream && (reply.headers.get("content-type") ?? "").startsWith("text/event-stream");
    if (reply.status === 200 || isStream) {
      const view = viewOf(endpoint, isStream, body);
      if (view.error !== null) return over("failed", `error: ${view.error.message}`);
      if (view.complete && view.usage !== null) return over("end", "", view.usage);
      return over("cut", `within the reply: ${broke}`);
    }
    if (broke !== null) return over("cut", `within a ${reply.status}: ${broke}`);
    return over("failed", `${reply.status} ${/"message":"([^"]{0,60})/.exec(body)?.[1] ?? body.slice(0, 60)}`);
  }

  /** Asks without end; who fails rests a little, as clients do. */
  async load(askers: readonly Asker[], clients: number, isOver: () => boolean): Promise<void> {
    const one = async (): Promise<void> => {
      while (!isOver()) {
        const { outcome } = await this.ask(askers[this.below(askers.length)]!);
        if (outcome !== "end") await Bun.sleep(100 + this.below(200));
      }
    };
    await Promise.all(Array.from({ length: clients }, one));
  }

  /** Starts it again until it runs: it may not while PostgreSQL is away. */
  async begin(index: number): Promise<void> {
    for (;;) {
      try {
        return await this.gateways[index]!.restart();
      } catch {
        this.count("starts that failed");
        await Bun.sleep(200);
      }
    }
  }

  async kill(index: number, awayMs: number): Promise<void> {
    await this.gateways[index]!.kill("SIGKILL");
    await Bun.sleep(awayMs);
    await this.begin(index);
  }

  /** Stands still for a while. */
  async stop(index: number, ms: number): Promise<void> {
    const { pid } = this.gateways[index]!;
    process.kill(pid, "SIGSTOP");
    await Bun.sleep(ms);
    process.kill(pid, "SIGCONT");
  }

  /** PostgreSQL dies as in a power cut. */
  async away(ms: number): Promise<void> {
    await this.postgres.kill();
    await Bun.sleep(ms);
    await this.postgres.goOn();
  }

  /** An operator's transaction that is left open. */
  async lockAccount(ms: number): Promise<void> {
    const client = new Bun.SQL({ url: this.postgres.url("books"), max: 1 });
    await client.begin(async (session) => {
      await session.unsafe(
        "SELECT 1 FROM accounts WHERE email <> 'operator@localhost' ORDER BY random() LIMIT 1 FOR UPDATE",
      );
      await Bun.sleep(ms);
    });
    await client.close();
  }

  /** To a standby that every commit had waited for. */
  async failOver(): Promise<void> {
    const old = this.postgres;
    const standby = await old.standby();
    await Bun.sleep(500 + this.below(1_000));
    await old.kill();
    await standby.promote();
    this.postgres = standby;
    for (const proxy of this.proxies) {
      proxy.upstream = standby.port;
      proxy.breakOff();
    }
    await old[Symbol.asyncDispose]();
  }

  /** When nobody asks anymore and nothing fails anymore: all that is wrong, in words. */
  async contradictions(): Promise<string[]> {
    const wrong: string[] = [];
    const rows = (text: string) => this.postgres.ask(text, "books") as Promise<readonly Record<string, any>[]>;
    await eventually(
      "gateways give back what those held that are gone",
      async () => (await rows("SELECT count(*)::int AS holds FROM holds"))[0]!["holds"] === 0,
      60_000,
    ).catch((error: Error) => wrong.push(error.message));
    const lines = await rows(
      `SELECT billing_key, input_fresh::int AS fresh, input_cached::int AS cached, output::int AS output,
         reasoning::int AS reasoning FROM journal WHERE endpoint IS NOT NULL AND output = 400`,
    );
    const charges = Map.groupBy(lines, (line) =>
      numberOf(line["fresh"] + line["cached"], line["cached"], line["reasoning"]),
    );
    const ids = new Set<string>();
    for (const { number, outcome, id, usage, why } of this.seen) {
      const own = charges.get(number) ?? [];
      charges.delete(number);
      const isRight = outcome === "end" ? own.length === 1 : outcome === "cut" ? own.length <= 1 : own.length === 0;
      if (!isRight) wrong.push(`${number} (${id}): ${outcome} ${why}, and ${own.length} charges`);
      for (const line of own) {
        if (id !== null && line["billing_key"] !== id)
          wrong.push(`${number}: told ${id}, charged ${line["billing_key"]}`);
        const written = [line["fresh"] + line["cached"], usage?.cached == null ? null : line["cached"], line["output"]];
        if (usage !== null && [usage.input, usage.cached, usage.output].join() !== written.join()) {
          wrong.push(`${number} was told ${JSON.stringify(usage)}, on disk is ${written}`);
        }
      }
      if (id !== null && ids.has(id)) wrong.push(`two replies carry the id ${id}`);
      if (id !== null) ids.add(id);
    }
    for (const [number, own] of charges) wrong.push(`${own.length} charges for ${number}, which nobody asked`);
    const [sums] = await rows(
      `SELECT sum(held)::int AS held, sum(waiting_held)::int AS waiting, sum(holds)::int AS holds, sum(begun)::int AS begun,
         sum(expected)::int AS expected, (SELECT count(*)::int FROM holds) AS rows,
         count(*) FILTER (WHERE credit < 0)::int AS negative FROM accounts`,
    );
    if (Object.values(sums!).some((sum) => sum !== 0)) wrong.push(`not all is zero: ${JSON.stringify(sums)}`);
    const broken = await rows(
      `SELECT id::int AS id FROM accounts WHERE allowance_used + coalesce(
           (SELECT sum(used) FROM quota_use WHERE account_id = id AND quota = 'allowance' AND period <> allowance_day), 0)
         <> coalesce((SELECT sum(used) FROM journal WHERE account_id = id), 0)
         OR credit <> coalesce((SELECT sum(credit_delta) FROM journal WHERE account_id = id), 0)`,
    );
    for (const { id } of broken) wrong.push(`account ${id} is not the sum of its lines`);
    const database = new Database(await openServer(this.postgres.url("books")));
    const { violations } = await verifyBooks(database, boundsOf(plans));
    await database.close();
    for (const violation of violations) wrong.push(JSON.stringify(violation));
    for (const { output } of this.gateways) {
      for (const line of output.split("\n")) if (isDefect(line)) wrong.push(line.slice(0, 400));
    }
    return wrong;
  }

  /** How many requests came to what, and why they failed. */
  report(): object {
    const outcomes = new Map<string, number>();
    for (const { outcome, why } of this.seen) {
      const what = why === "" ? outcome : `${outcome}, ${why}`;
      outcomes.set(what, (outcomes.get(what) ?? 0) + 1);
    }
    let faults = 0;
    for (const [fault, times] of this.faults) if (fault !== "starts that failed") faults += times;
    return {
      requests: this.seen.length,
      faults,
      byFault: Object.fromEntries(this.faults),
      outcomes: Object.fromEntries([...outcomes].sort(([, a], [, b]) => b - a)),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const log = process.env["TOLLGATE_SHOW"];
    if (log !== undefined) for (const { output } of this.gateways) appendFileSync(log, output);
    for (const gateway of this.gateways) await gateway[Symbol.asyncDispose]();
    for (const proxy of this.proxies) proxy.close();
    this.#node.stop();
    await this.postgres[Symbol.asyncDispose]();
    for (const { dataFolder } of this.gateways) rmSync(dataFolder, { recursive: true, force: true });
  }
}

/** Lines of a gateway's log that no failure of the network, of PostgreSQL or of other gateways explains. */
const isDefect = (line: string): boolean =>
  /"level":"error","event":"(?:the lane failed|request failed|a batch failed|the database lost|a hold cannot|gone gateways cannot)/.test(
    line,
  );
