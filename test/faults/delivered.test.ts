// What a client received is paid for, unless the gateway or a node failed, and what it did not receive is not: a raw node
// that does what no engine should, before the real process (in the longer form with two threads, too), in three dialects, streamed and
// not.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import type { Endpoint } from "../fixtures/endpoints.ts";
import { billedTokens, bodyOf, budgetField, type ClientView, endpoints, viewOf } from "../fixtures/client-view.ts";
import { eventually } from "../fixtures/eventually.ts";
import { type Account, GatewayProcess, type UsageRow } from "../fixtures/gateway-process.ts";
import { longForm } from "../fixtures/optional.ts";
import {
  chunk,
  doneEvent,
  event,
  finishEvent,
  lastChunk,
  RawNode,
  type RawReply,
  type RawRequest,
  streamHead,
  textEvent,
  usageEvent,
  wholeReply,
} from "../fixtures/raw-node.ts";
import { type SearchService, startSearchService } from "../fixtures/search-service.ts";

const timeLimit = 120_000;
const hosted = "open-05-3BIT-REAP";
/** Its budget does not limit the answer. */
const firstParty = "core-3";

type Script = (request: RawRequest, reply: RawReply) => void | Promise<void>;

/** By the word after "play " in a prompt: what the node does. */
const scripts = new Map<string, Script>();
const play: Script = (request, reply) => {
  if (request.path.endsWith("/models")) {
    const list = { object: "list", data: [{ id: "raw", object: "model", owned_by: "vllm" }] };
    return reply.write(wholeReply("200 OK", JSON.stringify(list)));
  }
  const name = /play ([\w-]+)/.exec(request.body)?.[1] ?? "";
  const script = scripts.get(name);
  if (script === undefined) return reply.write(wholeReply("404 Not Found", "{}"));
  return script(request, reply);
};

const whole = (...events: readonly string[]): Buffer =>
  Buffer.concat([Buffer.from(streamHead), chunk(events.join("")), Buffer.from(lastChunk)]);
const says =
  (...events: readonly string[]): Script =>
  (_, reply) =>
    reply.write(whole(...events));
/** Says it and goes on until it is stopped. */
const saysForEver =
  (first: string, again: string): Script =>
  async (_, reply) => {
    let stopped = false;
    void reply.closed.then(() => (stopped = true));
    reply.write(Buffer.concat([Buffer.from(streamHead), chunk(first)]));
    const block = chunk(again);
    while (!stopped) {
      reply.write(block);
      await new Promise((resume) => setTimeout(resume, 1));
    }
  };

/** Whether this is a later round of the tool loop. */
const isLater = ({ body }: RawRequest): boolean => body.includes('"role":"tool"');
const callEvent = (name: string, json: string, index = 0): string =>
  event({
    delta: { tool_calls: [{ index, id: `call_${index}`, type: "function", function: { name, arguments: json } }] },
    finish_reason: null,
  });

let node: RawNode;
let service: SearchService;
beforeAll(() => {
  node = new RawNode(play);
  service = startSearchService();
});
afterAll(() => {
  node.stop();
  service[Symbol.dispose]();
});

type Asked = Readonly<{ status: number; body: string; view: ClientView; rows: readonly UsageRow[]; spent: number }>;

describe.each(longForm ? [1, 2] : [1])("%i thread(s)", (threads) => {
  let gateway: GatewayProcess;
  beforeAll(async () => {
    const config = `[[nodes]]\nname = "raw"\nurl = "${node.url}"\nslots = 64\n[nodes.models]\n"*" = "raw"\n${service.config}`;
    gateway = await GatewayProcess.start({ config, threads });
  }, timeLimit);
  afterAll(() => gateway[Symbol.asyncDispose]());
  afterEach(() => gateway.expectNothingReserved(), timeLimit);

  const credit = 100_000_000;

  async function send(account: Account, endpoint: Endpoint, body: object, signal?: AbortSignal): Promise<Response> {
    return fetch(gateway.url + endpoint, {
      method: "POST",
      headers: { authorization: `Bearer ${account.api_key}` },
      body: JSON.stringify(body),
      ...(signal === undefined ? {} : { signal }),
    });
  }

  async function ask(
    endpoint: Endpoint,
    stream: boolean,
    script: string,
    more: object,
    model = hosted,
  ): Promise<Asked> {
    const account = await gateway.account(credit, "pro");
    const response = await send(account, endpoint, bodyOf(endpoint, model, `play ${script}`, { stream, ...more }));
    const body = await response.text();
    const { status } = response;
    return { status, body, view: viewOf(endpoint, stream && status === 200, body), ...(await paid(account)) };
  }

  async function paid(account: Account): Promise<Pick<Asked, "rows" | "spent">> {
    await eventually("lines are on disk", async () => {
      const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
      return /^tollgate_open_requests 0$/m.test(metrics) && /^tollgate_journal_pending 0$/m.test(metrics);
    });
    const rows = await gateway.usage(account.email);
    const { credit: left, allowance } = await gateway.show(account.email);
    return { rows, spent: credit + allowance.granted - left - allowance.left };
  }

  /** One row, of what the balance lost. */
  function expectPaid({ rows, spent }: Pick<Asked, "rows" | "spent">, usage: Partial<UsageRow>): void {
    expect(rows).toHaveLength(1);
    expect(rows[0]!).toMatchObject(usage);
    expect(spent).toBe(rows[0]!.billed_tokens);
    expect(rows[0]!.billed_tokens).toBe(billedTokens(rows[0]!));
    expect(spent).toBeGreaterThan(0);
  }

  function expectFree({ rows, spent }: Pick<Asked, "rows" | "spent">): void {
    expect(rows).toEqual([]);
    expect(spent).toBe(0);
  }

  describe.each(endpoints)("%s", (endpoint) => {
    const schema = { type: "string", not: {} };
    const named: Readonly<Record<Endpoint, object>> = {
      "/v1/chat/completions": { response_format: { type: "json_schema", json_schema: { name: "a", schema } } },
      "/v1/messages": { output_config: { format: { type: "json_schema", schema } } },
      "/v1/responses": { text: { format: { type: "json_schema", name: "a", schema } } },
    };
    const parameters = { type: "object", properties: { a: schema }, required: ["a"] };
    const forced: Readonly<Record<Endpoint, (name: string, strict: boolean, parameters: object) => object>> = {
      "/v1/chat/completions": (name, strict, parameters) => ({
        tools: [{ type: "function", function: { name, parameters, strict } }],
        tool_choice: { type: "function", function: { name } },
      }),
      "/v1/messages": (name, strict, parameters) => ({
        tools: [{ name, input_schema: parameters, strict }],
        tool_choice: { type: "tool", name },
      }),
      "/v1/responses": (name, strict, parameters) => ({
        tools: [{ type: "function", name, parameters, strict }],
        tool_choice: { type: "function", name },
      }),
    };
    const misfits: [string, object, string][] = [
      ["a schema that nothing fits", named[endpoint], "words"],
      ["a strict tool that is forced", forced[endpoint]("fill_in", true, parameters), "calls-fill_in"],
      ["the tool named json", forced[endpoint]("json", false, parameters), "calls-json"],
    ];
    if (endpoint === "/v1/chat/completions") {
      misfits.push(["json_object", { response_format: { type: "json_object" } }, "words"]);
    }
    scripts.set("words", says(...Array<string>(200).fill(textEvent("word ")), finishEvent(), usageEvent(50, 200)));
    for (const name of ["fill_in", "json"]) {
      const call = callEvent(name, JSON.stringify({ a: "word ".repeat(200) }));
      scripts.set(`calls-${name}`, says(call, finishEvent("tool_calls"), usageEvent(50, 200), doneEvent));
    }

    test.each(misfits)(
      "%s: what was streamed is paid for, what nobody saw is not",
      async (_, more, script) => {
        const streamed = await ask(endpoint, true, script, more);
        expect([streamed.status, streamed.view.complete, streamed.view.faults]).toEqual([200, false, []]);
        expect(streamed.view.error?.message).toMatch(/format\. Nothing is charged but what was streamed/);
        expectPaid(streamed, { input: 50, output: 200, estimated: false });
        const collected = await ask(endpoint, false, script, more);
        expect(collected.status).toBe(500);
        expectFree(collected);
      },
      timeLimit,
    );

    // -------------------------------------------------------------------------------------------- the tool loop

    const searching: object =
      endpoint === "/v1/messages"
        ? { tools: [{ type: "web_search_20250305", name: "web_search" }] }
        : endpoint === "/v1/responses"
          ? { tools: [{ type: "web_search" }] }
          : { web_search: true };
    const round = [
      textEvent("Let me look. "),
      callEvent("web_search", '{"query":"bun"}'),
      finishEvent("tool_calls"),
      usageEvent(100, 20),
      doneEvent,
    ];
    const cutAs: Readonly<Record<Endpoint, string>> = {
      "/v1/chat/completions": "length",
      "/v1/messages": "max_tokens",
      "/v1/responses": "incomplete",
    };
    const overflow = JSON.stringify({
      error: { message: "This model's maximum context length is 1000 tokens. However, you requested 1200 tokens" },
    });
    const refusesLater: [string, Script][] = [
      ["says that its context is full", (_, reply) => reply.write(wholeReply("400 Bad Request", overflow))],
      ["says so inside its stream", says(`data: ${overflow}\n\n`)],
      ["finds the request too large", (_, reply) => reply.write(wholeReply("413 Payload Too Large", ""))],
      ["takes no such messages", (_, reply) => reply.write(wholeReply("422 Unprocessable Entity", "{}"))],
    ];
    for (const [place, [, later]] of refusesLater.entries()) {
      scripts.set(`full-${place}`, (request, reply) =>
        isLater(request) ? later(request, reply) : reply.write(whole(...round)),
      );
    }
    test.each(refusesLater.map(([name], place) => [name, place] as const))(
      "a node that %s in a later round: the rounds so far are paid for, and the answer ends in form",
      async (_, place) => {
        for (const stream of [true, false]) {
          const asked = await ask(endpoint, stream, `full-${place}`, searching);
          const { status, view } = asked;
          expect([status, view.complete, view.error, view.faults]).toEqual([200, true, null, []]);
          expect([view.text, view.finish]).toEqual(["Let me look. ", cutAs[endpoint]]);
          expect(view.usage).toMatchObject({ input: 100, output: 20 });
          expectPaid(asked, { input: 100, output: 20 });
        }
      },
      timeLimit,
    );

    const failsLater: [string, Script][] = [
      ["fails", (_, reply) => reply.write(wholeReply("500 Internal Server Error", "{}"))],
      ["is busy", (_, reply) => reply.write(wholeReply("429 Too Many Requests", "{}"))],
      ["resets", (_, reply) => reply.reset()],
      ["stops within its answer", says(textEvent("and "), 'data: {"error":{"message":"out of memory"}}\n\n')],
    ];
    for (const [place, [, later]] of failsLater.entries()) {
      scripts.set(`fails-${place}`, (request, reply) =>
        isLater(request) ? later(request, reply) : reply.write(whole(...round)),
      );
    }
    test.each(failsLater.map(([name], place) => [name, place] as const))(
      "a node that %s in a later round: nothing is paid for, no search counts",
      async (_, place) => {
        for (const stream of [true, false]) {
          const asked = await ask(endpoint, stream, `fails-${place}`, searching);
          expect([asked.view.complete, asked.view.error === null]).toEqual([false, false]);
          expectFree(asked);
        }
      },
      timeLimit,
    );

    test(
      "a context that is full within the answer ends it in form",
      async () => {
        scripts.set("full-within", says(textEvent("so far "), textEvent("so good"), `data: ${overflow}\n\n`));
        for (const stream of [true, false]) {
          const asked = await ask(endpoint, stream, "full-within", {});
          expect([asked.status, asked.view.complete, asked.view.text, asked.view.finish]).toEqual([
            200,
            true,
            "so far so good",
            cutAs[endpoint],
          ]);
          expectPaid(asked, { output: 4, estimated: true });
        }
      },
      timeLimit,
    );

    // -------------------------------------------------------------------------------------------- answers without end

    const runningUsage = (output: number) => ({ usage: { prompt_tokens: 10, completion_tokens: output } });
    const manyCalls = (from: number, count: number): string =>
      event({
        delta: {
          tool_calls: Array.from({ length: count }, (_, at) => ({
            index: from + at,
            id: `call_${from + at}`,
            type: "function",
            function: { name: "get", arguments: '{"a":1}' },
          })),
        },
        finish_reason: null,
      });
    const tool: object =
      endpoint === "/v1/messages"
        ? { tools: [{ name: "get", input_schema: { type: "object" } }] }
        : endpoint === "/v1/responses"
          ? { tools: [{ type: "function", name: "get", parameters: { type: "object" } }] }
          : { tools: [{ type: "function", function: { name: "get", parameters: { type: "object" } } }] };
    const callsIn = (body: string): number => new Set(body.match(/call_\d+/g)).size;

    test(
      "whole calls count toward the budget, and there are at most 128 of them",
      async () => {
        scripts.set("many-calls", says(manyCalls(0, longForm ? 20_000 : 2_000), finishEvent("tool_calls"), doneEvent));
        scripts.set("calls-for-ever", saysForEver(manyCalls(0, 100), manyCalls(100, 100)));
        for (const stream of [true, false]) {
          const few = await ask(endpoint, stream, "many-calls", { ...tool, [budgetField[endpoint]]: 5 });
          expect([few.status, few.view.complete, few.view.finish]).toEqual([200, true, cutAs[endpoint]]);
          expect(callsIn(few.body)).toBeLessThanOrEqual(5);
          expectPaid(few, { output: 5 });
          for (const script of ["many-calls", "calls-for-ever"]) {
            const many = await ask(endpoint, stream, script, tool, firstParty);
            expect([many.status, many.view.complete, many.view.finish]).toEqual([200, true, cutAs[endpoint]]);
            expect(callsIn(many.body)).toBe(128);
            expect(many.rows[0]!.output).toBeGreaterThanOrEqual(256);
          }
        }
      },
      timeLimit,
    );

    test(
      "one event does not go beyond the budget",
      async () => {
        scripts.set("one-event", says(textEvent("x".repeat(1_000_000)), finishEvent(), doneEvent));
        for (const stream of [true, false]) {
          const { view, rows } = await ask(endpoint, stream, "one-event", { [budgetField[endpoint]]: 10 });
          expect([view.complete, view.finish]).toEqual([true, cutAs[endpoint]]);
          expect(view.text.length).toBeLessThanOrEqual(320);
          expect(rows[0]!.output).toBe(10);
        }
      },
      timeLimit,
    );

    test(
      "the context ends an answer that no budget limits",
      async () => {
        const word = Array<string>(1_000).fill(textEvent("ab")).join("");
        scripts.set("for-ever", saysForEver(textEvent("ab"), word));
        for (const stream of longForm ? [true, false] : [endpoint !== "/v1/messages"]) {
          const { status, view, rows } = await ask(endpoint, stream, "for-ever", {}, firstParty);
          expect([status, view.complete, view.finish]).toEqual([200, true, cutAs[endpoint]]);
          expect(view.text.length).toBe(2 * 196_608);
          expect(rows[0]!.output).toBe(196_608);
        }
      },
      timeLimit,
    );

    // -------------------------------------------------------------------------------------------- departures

    const stalls =
      (...events: readonly string[]): Script =>
      (_, reply) => {
        const read = events.length === 0 ? Buffer.alloc(0) : chunk(events.join(""));
        reply.write(Buffer.concat([Buffer.from(streamHead), read]));
      };

    test(
      "a client that leaves pays for what was delivered, also where the node's running count stands still",
      async () => {
        const frozen = Array<string>(43).fill(textEvent("ab", runningUsage(1)));
        scripts.set("frozen", stalls(...frozen));
        const account = await gateway.account(credit, "pro");
        const leave = new AbortController();
        const body = bodyOf(endpoint, hosted, "play frozen", { stream: true });
        const response = await send(account, endpoint, body, leave.signal);
        let received = "";
        for await (const bytes of response.body!) {
          received += new TextDecoder().decode(bytes);
          if (viewOf(endpoint, true, received).text.length === 86) break;
        }
        leave.abort();
        const { rows, spent } = await paid(account);
        expectPaid({ rows, spent }, { input: 10, output: 43 });
      },
      timeLimit,
    );

    test(
      "a client that leaves before a byte of its reply pays nothing",
      async () => {
        for (const stream of [true, false]) {
          const script = stream ? "silence" : "words-and-silence";
          scripts.set("silence", stalls());
          scripts.set("words-and-silence", stalls(textEvent("word "), textEvent("word ")));
          const account = await gateway.account(credit, "pro");
          const leave = new AbortController();
          const before = node.requests.length;
          const asking = send(account, endpoint, bodyOf(endpoint, hosted, `play ${script}`, { stream }), leave.signal);
          await eventually("the node is asked", async () => node.requests.length > before);
          leave.abort();
          await asking.catch(() => {});
          expectFree(await paid(account));
        }
      },
      timeLimit,
    );

    // -------------------------------------------------------------------------------------------- told in words

    /** A call that must be made; and a schema. Nodes are held to neither here. */
    const simple = { type: "object", properties: { a: { type: "integer" } }, required: ["a"] };
    const demanding = forced[endpoint]("get", false, simple);
    const asJson: object = {
      "/v1/chat/completions": { response_format: { type: "json_schema", json_schema: { name: "a", schema: simple } } },
      "/v1/messages": { output_config: { format: { type: "json_schema", schema: simple } } },
      "/v1/responses": { text: { format: { type: "json_schema", name: "a", schema: simple } } },
    }[endpoint];
    const isTold = ({ body }: RawRequest): boolean => /You must call|must be JSON that matches/.test(body);
    const chats = (): number => node.requests.filter(({ path }) => path.endsWith("/chat/completions")).length;
    const leavesOut = whole(
      textEvent("I would "),
      textEvent("rather not."),
      finishEvent(),
      usageEvent(50, 400),
      doneEvent,
    );
    const makesIt = whole(callEvent("get", '{"a":1}'), finishEvent("tool_calls"), usageEvent(90, 7), doneEvent);
    const refusesSchema = wholeReply("400 Bad Request", '{"error":{"message":"grammar error: not supported"}}');
    const fits = whole(textEvent('{"a":1}'), finishEvent(), usageEvent(70, 6), doneEvent);
    const dies: Script = (_, reply) => reply.write(wholeReply("500 Internal Server Error", "{}"));

    /** Both ways in one go: what the node answers to the request, and to the one in words. */
    async function repeated(script: string, more: object, first: Buffer | string, second: Script): Promise<Asked[]> {
      scripts.set(script, (request, reply) => (isTold(request) ? second(request, reply) : reply.write(first)));
      const all: Asked[] = [];
      for (const stream of [true, false]) {
        const before = chats();
        all.push(await ask(endpoint, stream, script, more));
        expect(chats()).toBeGreaterThanOrEqual(before + 2); // one more where a connection was reset
      }
      return all;
    }

    test(
      "a call that came only in words is paid for once: the client's own prompt and what was delivered",
      async () => {
        for (const asked of await repeated("told-call", demanding, leavesOut, (_, reply) => reply.write(makesIt))) {
          expect([asked.status, asked.view.complete, asked.view.error, asked.view.text]).toEqual([200, true, null, ""]);
          expect(asked.body).not.toContain("rather");
          expect(asked.view.usage).toMatchObject({ input: 50, output: 7 });
          expectPaid(asked, { input: 50, output: 7, estimated: false });
        }
      },
      timeLimit,
    );
    test(
      "an answer to a schema that was told in words is paid for once",
      async () => {
        for (const asked of await repeated("told-schema", asJson, refusesSchema, (_, reply) => reply.write(fits))) {
          expect([asked.status, asked.view.complete, asked.view.text]).toEqual([200, true, '{"a":1}']);
          expect(asked.view.usage).toMatchObject({ input: 70, output: 6 });
          expectPaid(asked, { input: 70, output: 6, estimated: false });
        }
      },
      timeLimit,
    );
    test(
      "what fails in words too, or meets a node that fails then, is free",
      async () => {
        const again: [string, object, Buffer | string, Script][] = [
          ["told-twice", demanding, leavesOut, (_, reply) => reply.write(leavesOut)],
          ["told-dies", demanding, leavesOut, dies],
          ["told-resets", demanding, leavesOut, (_, reply) => reply.reset()],
          ["told-schema-dies", asJson, refusesSchema, dies],
        ];
        for (const [script, more, first, second] of again)
          for (const asked of await repeated(script, more, first, second)) {
            expect([script, asked.view.complete, asked.view.error === null]).toEqual([script, false, false]);
            expect(asked.body).not.toContain("rather");
            expectFree(asked);
          }
      },
      timeLimit,
    );
    test(
      "a client that leaves while it is asked again pays nothing, and one that leaves within the call pays for that",
      async () => {
        const part = chunk(callEvent("get", '{"a":'));
        for (const [script, read] of [
          ["told-silence", Buffer.alloc(0)],
          ["told-part", part],
        ] as const) {
          scripts.set(script, (request, reply) =>
            reply.write(isTold(request) ? Buffer.concat([Buffer.from(streamHead), read]) : leavesOut),
          );
          const account = await gateway.account(credit, "pro");
          const leave = new AbortController();
          const before = chats();
          const asking = send(
            account,
            endpoint,
            bodyOf(endpoint, hosted, `play ${script}`, { stream: true, ...demanding }),
            leave.signal,
          );
          if (read === part) {
            let received = "";
            for await (const bytes of (await asking).body!) {
              received += new TextDecoder().decode(bytes);
              if (/a\\?":/.test(received)) break;
            }
          } else await eventually("the node is asked again", async () => chats() === before + 2);
          leave.abort();
          await asking.catch(() => {});
          if (read === part) expectPaid(await paid(account), { input: 50 });
          else expectFree(await paid(account));
        }
      },
      timeLimit,
    );

    // -------------------------------------------------------------------------------------------- line ends

    test(
      "a node's events whose lines end with carriage returns",
      async () => {
        const events = [textEvent("one "), textEvent("two"), finishEvent(), usageEvent(10, 2), doneEvent];
        const returns = events.map((each) => each.replaceAll("\n", "\r"));
        scripts.set("returns", async (_, reply) => {
          reply.write(streamHead);
          for (const each of returns) {
            reply.write(chunk(each));
            await new Promise((resume) => setTimeout(resume, 1));
          }
          reply.write(lastChunk);
        });
        for (const stream of [true, false]) {
          const asked = await ask(endpoint, stream, "returns", {});
          expect([asked.view.complete, asked.view.text]).toEqual([true, "one two"]);
          expectPaid(asked, { input: 10, output: 2 });
        }
      },
      timeLimit,
    );
  });
});
