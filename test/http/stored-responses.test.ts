// Stored responses over HTTP: continued, fetched, listed and deleted by their account only, also after a crash.
import { describe, expect, test } from "bun:test";
import { eventually } from "../fixtures/eventually.ts";
import type { Account } from "../fixtures/gateway-process.ts";
import { type ErrorReply, post } from "../fixtures/requests.ts";
import { type ResponseBody, expectOrderedResponse } from "../fixtures/response-events.ts";
import { Stack, useStack } from "../fixtures/stack.ts";

const timeLimit = 120_000;
const stack = useStack();

const respond = async (account: Account, body: object, on = stack): Promise<ResponseBody> => {
  const reply = await post(on, account, { model: "core-3", ...body }, { path: "/v1/responses" });
  const json = await reply.json();
  expect(json).toMatchObject({ object: "response" });
  expect(reply.status).toBe(200);
  return json as ResponseBody;
};
const refused = async (account: Account, body: object, on = stack): Promise<ErrorReply["error"]> => {
  const reply = await post(on, account, { model: "core-3", ...body }, { path: "/v1/responses" });
  expect(reply.status).toBe(400);
  return ((await reply.json()) as ErrorReply).error;
};
const ask = (account: Account, path: string, method = "GET"): Promise<Response> =>
  fetch(`${stack.gateway.url}/v1/responses/${path}`, {
    method,
    headers: { authorization: `Bearer ${account.api_key}` },
  });
const statuses = async (account: Account, id: string): Promise<number[]> => {
  const [shown, listed, cancelled, deleted] = await Promise.all([
    ask(account, id),
    ask(account, `${id}/input_items`),
    ask(account, `${id}/cancel`, "POST"),
    ask(account, id, "DELETE"),
  ]);
  return [shown, listed, cancelled, deleted].map(({ status }) => status);
};
const prompt = (script: string) => {
  const marker = stack.node.marker(script);
  return { marker, input: `hello [[${marker}]]` };
};

describe("a stored response", () => {
  test(
    "is continued by its id with what was said before, and billed for it",
    async () => {
      const account = await stack.gateway.account();
      const { marker, input } = prompt("one-tool");
      const tools = [{ type: "function", name: "get_weather", parameters: { type: "object" } }];
      const first = await respond(account, { input, tools, instructions: "be brief" });
      expect(first["store"]).toBe(true);
      expect(first.output).toMatchObject([{ type: "function_call", call_id: "call_1" }]);
      const second = await respond(account, {
        previous_response_id: first.id,
        input: [{ type: "function_call_output", call_id: "call_1", output: "sunny" }],
        tools,
      });
      expect(second).toMatchObject({ previous_response_id: first.id, output_text: "It is sunny in Paris." });
      const third = await respond(account, { previous_response_id: second.id, input: "and now?" });
      expect(third.status).toBe("completed");

      const seen = await stack.node.requests(marker);
      expect(seen.map(({ body }) => (body!["messages"] as { role: string }[]).map(({ role }) => role))).toEqual([
        ["system", "user"],
        ["user", "assistant", "tool"], // instructions are those of each request
        ["user", "assistant", "tool", "assistant", "user"],
      ]);
      expect(await stack.gateway.usage(account.email)).toHaveLength(3);
    },
    timeLimit,
  );

  test(
    "of a stream is there as soon as its end was read",
    async () => {
      const account = await stack.gateway.account();
      const { input } = prompt("reasoning-text");
      const reply = await post(stack, account, { model: "core-3", input, stream: true }, { path: "/v1/responses" });
      const response = expectOrderedResponse(await reply.text());
      const next = await respond(account, { previous_response_id: response.id, input: "go on" });
      expect(next["previous_response_id"]).toBe(response.id);
      const { output_text, ...fetched } = (await (await ask(account, response.id)).json()) as ResponseBody;
      expect(output_text).toBe("Hi there!");
      expect(fetched).toEqual(
        expect.objectContaining({ id: response.id, output: response.output, usage: response["usage"] }),
      );
    },
    timeLimit,
  );

  test(
    "is continued by references to its items, as the AI SDK does",
    async () => {
      const account = await stack.gateway.account();
      const { marker, input } = prompt("reasoning-text");
      const first = await respond(account, { input });
      const user = { role: "user", content: [{ type: "input_text", text: input }] };
      const references = first.output.map(({ id }) => ({ type: "item_reference", id }));
      const again = { role: "user", content: "again" };
      const second = await respond(account, { input: [user, ...references, again] });
      // the second one's own input stays whole when the first is gone
      expect((await ask(account, first.id, "DELETE")).status).toBe(200);
      await respond(account, { previous_response_id: second.id, input: "and again" });
      const seen = await stack.node.requests(marker);
      expect(seen.map(({ body }) => (body!["messages"] as { role: string }[]).map(({ role }) => role))).toEqual([
        ["user"],
        ["user", "assistant", "user"],
        ["user", "assistant", "user", "assistant", "user"],
      ]);
      const error = await refused(account, { input: [user, { type: "item_reference", id: first.output.at(-1)!.id }] });
      expect(error.message).toContain("is stored here; send the item itself");
    },
    timeLimit,
  );

  test(
    "is fetched as the client got it, listed by pages, and deleted for good",
    async () => {
      const account = await stack.gateway.account();
      const { input } = prompt("text");
      const items = [
        { role: "user", content: "one" },
        { role: "assistant", content: "two" },
        { id: "msg_mine", type: "message", role: "user", content: [{ type: "input_text", text: input }] },
      ];
      const response = await respond(account, { input: items, metadata: { a: "b" } });
      expect(await (await ask(account, response.id)).json()).toEqual(response);

      const list = async (query: string): Promise<Record<string, unknown> & { data: { id: string }[] }> =>
        (await (await ask(account, `${response.id}/input_items?${query}`)).json()) as never;
      const stem = response.id.slice("resp_".length);
      const [one, two, mine] = [`msg_${stem}_in0`, `msg_${stem}_in1`, "msg_mine"];
      const whole = await list("order=asc");
      expect(whole).toMatchObject({ object: "list", first_id: one, last_id: mine, has_more: false });
      expect(whole.data).toEqual([
        { id: one, type: "message", role: "user", content: [{ type: "input_text", text: "one" }] },
        {
          id: two,
          type: "message",
          role: "assistant",
          content: [{ type: "output_text", text: "two", annotations: [] }],
        },
        items[2]!,
      ] as never);
      expect((await list("")).data.map(({ id }) => id)).toEqual([mine, two, one]);
      // an item that came without an id may be referred to by the one that it is listed under
      await respond(account, {
        input: [
          { type: "item_reference", id: two },
          { role: "user", content: "three" },
        ],
      });
      const page = await list("limit=2");
      expect(page).toMatchObject({ first_id: mine, last_id: two, has_more: true });
      expect(await list(`limit=2&after=${two}`)).toMatchObject({ first_id: one, last_id: one, has_more: false });
      for (const query of ["limit=0", "limit=101", "limit=x", "order=up", "after=msg_none"]) {
        expect((await ask(account, `${response.id}/input_items?${query}`)).status).toBe(400);
      }

      const deleted = await ask(account, response.id, "DELETE");
      expect(await deleted.json()).toEqual({ id: response.id, object: "response", deleted: true });
      expect(await statuses(account, response.id)).toEqual([404, 404, 404, 404]);
      const error = await refused(account, { previous_response_id: response.id, input: "x" });
      expect(error).toMatchObject({ code: "previous_response_not_found", type: "invalid_request_error" });
    },
    timeLimit,
  );

  test(
    "cannot be cancelled or streamed again, which is said",
    async () => {
      const account = await stack.gateway.account();
      const { id } = await respond(account, { input: prompt("text").input });
      const cancelled = await ask(account, `${id}/cancel`, "POST");
      expect(cancelled.status).toBe(400);
      expect(((await cancelled.json()) as ErrorReply).error.message).toContain("Only background responses");
      expect((await ask(account, `${id}?stream=true`)).status).toBe(400);
      expect((await ask(account, `${id}?stream=false&include[]=x`)).status).toBe(200);
    },
    timeLimit,
  );

  test(
    "is unknown to every other account",
    async () => {
      const [owner, other] = await Promise.all([stack.gateway.account(), stack.gateway.account()]);
      const response = await respond(owner, { input: prompt("text").input });
      expect(await statuses(other, response.id)).toEqual([404, 404, 404, 404]);
      const unknown = await refused(other, { previous_response_id: "resp_none", input: "x" });
      const foreign = await refused(other, { previous_response_id: response.id, input: "x" });
      expect(foreign).toEqual({ ...unknown, message: unknown.message.replace("resp_none", response.id) });
      const reference = { type: "item_reference", id: response.output[0]!.id };
      expect((await refused(other, { input: [reference] })).message).toContain("no item");
      expect((await ask(owner, response.id)).status).toBe(200);
      expect((await fetch(`${stack.gateway.url}/v1/responses/${response.id}`)).status).toBe(401);
    },
    timeLimit,
  );

  test(
    "is there after kill -9",
    async () => {
      await using own = await Stack.start();
      const account = await own.gateway.account();
      const { id } = await respond(account, { input: `hello [[${own.node.marker("text")}]]` }, own);
      // the next reply waits for what was kept before it
      const next = await respond(account, { input: "go on", previous_response_id: id }, own);
      await own.gateway.kill("SIGKILL");
      await own.gateway.restart();
      await respond(account, { input: "and on", previous_response_id: id }, own);
      expect(next["previous_response_id"]).toBe(id);
    },
    timeLimit,
  );
});

describe("nothing is kept", () => {
  test(
    "of a request with store: false, a compaction, a failure, or an answer that its client did not wait for",
    async () => {
      const account = await stack.gateway.account();
      const silent = await respond(account, { input: prompt("text").input, store: false });
      expect(silent["store"]).toBe(false);
      expect(await statuses(account, silent.id)).toEqual([404, 404, 404, 404]);

      const compact = { path: "/v1/responses/compact" };
      const compaction = await post(stack, account, { model: "core-3", input: prompt("text").input }, compact);
      const { id } = (await compaction.json()) as ResponseBody;
      expect((await ask(account, id)).status).toBe(404);

      const failing = { model: "core-3", input: prompt("error-mid-stream").input, stream: true };
      const failed = await post(stack, account, failing, { path: "/v1/responses" });
      expect((await ask(account, expectOrderedResponse(await failed.text()).id)).status).toBe(404);

      const { input, marker } = prompt("endless");
      const leave = new AbortController();
      const endless = { path: "/v1/responses", signal: leave.signal };
      const reply = await post(stack, account, { model: "core-3", input, stream: true }, endless);
      const { value } = await reply.body!.getReader().read();
      leave.abort();
      await stack.node.closedAt(marker);
      const left = /"id":"(resp_\w+)"/.exec(new TextDecoder().decode(value))![1]!;
      expect((await ask(account, left)).status).toBe(404);
    },
    timeLimit,
  );

  test(
    "where the configuration says so, and replies say it",
    async () => {
      await using own = await Stack.start({ config: "[responses]\nkeep_days = 0" });
      const account = await own.gateway.account();
      const response = await respond(account, { input: `hello [[${own.node.marker("text")}]]`, store: true }, own);
      expect(response["store"]).toBe(false);
      const error = await refused(account, { previous_response_id: response.id, input: "x" }, own);
      expect(error.code).toBe("previous_response_not_found");
      const begun = await post(own, account, {}, { path: "/v1/conversations" });
      expect([begun.status, await begun.json()]).toMatchObject([
        400,
        { error: { message: "Conversations are not kept here" } },
      ]);
      const shown = await fetch(`${own.gateway.url}/v1/responses/${response.id}`, {
        headers: { "x-api-key": account.api_key },
      });
      expect(shown.status).toBe(404);
    },
    timeLimit,
  );
});

test(
  "a limit of the configuration holds: the oldest go",
  async () => {
    await using own = await Stack.start({ config: "[responses]\nkeep_max_mib = 1" });
    const account = await own.gateway.account();
    const large = (index: number) => `${index} ${"x".repeat(300_000)} [[${own.node.marker("text")}]]`;
    const ids: string[] = [];
    for (const index of [1, 2, 3, 4]) ids.push((await respond(account, { input: large(index) }, own)).id);
    const found = await Promise.all(
      ids.map(async (id) => {
        const headers = { authorization: `Bearer ${account.api_key}` };
        return (await fetch(`${own.gateway.url}/v1/responses/${id}`, { headers })).status;
      }),
    );
    expect(found).toEqual([404, 200, 200, 200]);
  },
  timeLimit,
);

test(
  "input tokens are counted with the conversation that is continued",
  async () => {
    const account = await stack.gateway.account();
    const { input } = prompt("text");
    const { id } = await respond(account, { input });
    const count = async (body: object): Promise<number> => {
      const path = { path: "/v1/responses/input_tokens" };
      const reply = await post(stack, account, { model: "core-3", ...body }, path);
      expect(reply.status).toBe(200);
      return ((await reply.json()) as { input_tokens: number }).input_tokens;
    };
    const [alone, continued] = [await count({ input: "x" }), await count({ input: "x", previous_response_id: id })];
    expect(continued).toBeGreaterThan(alone + 10);
  },
  timeLimit,
);

test(
  "what waits to be written is a gauge",
  async () => {
    const metrics = await eventually("the gauge", async () => {
      const text = await (await fetch(`${stack.gateway.url}/metrics`)).text();
      return text.includes("tollgate_stored_responses_waiting_bytes 0") ? text : null;
    });
    expect(metrics).toContain("# HELP tollgate_stored_responses_waiting_bytes");
  },
  timeLimit,
);
