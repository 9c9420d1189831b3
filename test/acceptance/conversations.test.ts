// Conversations as the official package uses them, kept in a data folder and by two gateways on PostgreSQL.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import OpenAI from "openai";
import { temporaryFolder } from "../commands/program.ts";
import { eventually } from "../fixtures/eventually.ts";
import { type Account, GatewayProcess } from "../fixtures/gateway-process.ts";
import { ScriptedNode } from "../fixtures/node-process.ts";
import { startDatabases } from "../fixtures/postgres.ts";
import { finish, once, text } from "../fixtures/scripts.ts";
import { nodeTable } from "../fixtures/stack.ts";

const timeLimit = 120_000;
const model = "core-3";
type Item = OpenAI.Conversations.ConversationItem;
type Told = Readonly<{ status: number; error: { message: string; type: string } }>;

describe.each(["a data folder", "PostgreSQL"])("conversations in %s", (where) => {
  const inDatabase = where === "PostgreSQL";
  const folder = temporaryFolder();
  const opened = new AsyncDisposableStack();
  let node: ScriptedNode;
  /** One and another that are the same, or share a database. */
  let gateways: readonly [GatewayProcess, GatewayProcess];
  let url: string | null = null;
  const start = async (name: string, threads: number): Promise<GatewayProcess> =>
    opened.use(
      await GatewayProcess.start({
        config: `${nodeTable(node, 8)}\n[ledger]\ngateway = "${name}"`,
        ...(url === null ? {} : { env: { TOLLGATE_DATABASE_URL: url } }),
        dataFolder: join(folder.path, name),
        threads,
      }),
    );
  beforeAll(async () => {
    node = opened.use(await ScriptedNode.start());
    if (inDatabase) url = await opened.use(await startDatabases()).database("conversations");
    const first = await start("first", inDatabase ? 1 : 2);
    gateways = [first, inDatabase ? await start("second", 2) : first];
  }, timeLimit);
  afterAll(async () => {
    await opened.disposeAsync();
    folder[Symbol.dispose]();
  });

  const clientOf = ({ api_key: apiKey }: Account, place: 0 | 1 = 0): OpenAI =>
    new OpenAI({ baseURL: `${gateways[place].url}/v1`, apiKey, maxRetries: 0 });
  const newAccount = (): Promise<Account> => gateways[0].account();
  const itemsOf = (
    client: OpenAI,
    id: string,
    query: OpenAI.Conversations.ItemListParams = { order: "asc" },
  ): Promise<Item[]> => Array.fromAsync(client.conversations.items.list(id, query));
  const textsOf = (items: readonly Item[]): unknown[] =>
    items.map((item) => (item.type === "message" ? (item.content[0] as { text: string }).text : item.type));
  const refusedAs = async (asked: Promise<unknown>): Promise<Told> => {
    const thrown: unknown = await asked.then(() => null).catch((error: unknown) => error);
    expect(thrown).toBeInstanceOf(OpenAI.APIError);
    const { status, error } = thrown as InstanceType<typeof OpenAI.APIError>;
    return { status: status as number, error: error as Told["error"] };
  };

  test(
    "are made, told, changed and deleted, with their items",
    async () => {
      const account = await newAccount();
      const [client, other] = [clientOf(account), clientOf(account, 1)];
      const made = await client.conversations.create({
        items: [{ role: "user", content: "one" }],
        metadata: { topic: "demo" },
      });
      expect(made).toMatchObject({ object: "conversation", metadata: { topic: "demo" } });
      expect(made.id).toMatch(/^conv_\w+$/);
      expect(Math.abs(made.created_at - Date.now() / 1000)).toBeLessThan(60);
      expect(await other.conversations.retrieve(made.id)).toEqual(made);
      const changed = await other.conversations.update(made.id, { metadata: { topic: "other" } });
      expect(changed).toEqual({ ...made, metadata: { topic: "other" } });
      expect(await client.conversations.retrieve(made.id)).toEqual(changed);

      const added = await other.conversations.items.create(made.id, {
        items: [
          { type: "message", role: "assistant", content: "two" },
          { type: "function_call", call_id: "call_1", name: "weather", arguments: "{}" },
          { type: "function_call_output", call_id: "call_1", output: "sunny" },
        ],
      });
      expect(added).toMatchObject({ object: "list", has_more: false, first_id: added.data[0]!.id! });
      expect(added.last_id).toBe(added.data[2]!.id!);
      const all = await itemsOf(client, made.id);
      expect(all.slice(1)).toEqual(added.data);
      expect(all[0]).toEqual({
        type: "message",
        role: "user",
        status: "completed",
        id: all[0]!.id!,
        content: [{ type: "input_text", text: "one" }] as never,
      });
      expect(all.map(({ id }) => id!.split("_")[0])).toEqual(["msg", "msg", "fc", "fco"]);
      expect((await itemsOf(client, made.id, { limit: 1 })).map(({ id }) => id)).toEqual(
        all.map(({ id }) => id).reverse(),
      );
      const place = { conversation_id: made.id };
      expect(await other.conversations.items.retrieve(all[1]!.id!, { ...place, include: [] })).toEqual(all[1]!);

      // an id of theirs stays, and stands for one item
      const mine = { id: "msg_of mine/ü", type: "message", role: "user", content: "mine" } as never;
      const twice = await client.conversations.items.create(made.id, { items: [mine, mine] });
      expect(twice.data[0]!.id).toBe("msg_of mine/ü");
      expect(twice.data[1]!.id).not.toBe("msg_of mine/ü");
      expect(await client.conversations.items.delete("msg_of mine/ü", place)).toEqual(changed);
      expect(await refusedAs(client.conversations.items.retrieve("msg_of mine/ü", place))).toMatchObject({
        status: 404,
      });
      const left = await itemsOf(client, made.id);
      expect(left.map(({ id }) => id)).toEqual([...all, twice.data[1]!].map(({ id }) => id));
      expect(await itemsOf(client, made.id, { order: "asc", limit: 2, after: all[2]!.id! })).toEqual(left.slice(3));

      const gone = { id: made.id, object: "conversation.deleted", deleted: true } as const;
      expect(await other.conversations.delete(made.id)).toEqual(gone);
      expect(await refusedAs(client.conversations.retrieve(made.id))).toMatchObject({
        status: 404,
        error: { message: `Conversation with id '${made.id}' not found.` },
      });
      expect(await itemsOf(client, (await client.conversations.create()).id)).toEqual([]);
    },
    timeLimit,
  );

  test(
    "stand before a request's input, and its answer is added once, streamed and not, stored and not",
    async () => {
      const account = await newAccount();
      const [client, other] = [clientOf(account), clientOf(account, 1)];
      const marker = node.marker("text");
      const said = `hello [[${marker}]]`;
      const { id } = await client.conversations.create({ items: [{ role: "developer", content: "be brief" }] });
      const first = await client.responses.create({ model, conversation: id, input: said });
      expect(first.conversation).toEqual({ id });
      expect(first.usage!.input_tokens).toBeGreaterThan(0);
      const stream = await other.responses.create({
        model,
        conversation: { id },
        input: [{ role: "user", content: "and?" }],
        store: false,
        stream: true,
      } as OpenAI.Responses.ResponseCreateParamsStreaming);
      let second: OpenAI.Responses.Response | null = null;
      for await (const event of stream) {
        if (event.type === "response.created") expect(event.response.conversation).toEqual({ id });
        if (event.type === "response.completed") second = event.response;
      }
      expect(second!.conversation).toEqual({ id });
      expect(await refusedAs(client.responses.retrieve(second!.id))).toMatchObject({ status: 404 });
      expect((await client.responses.retrieve(first.id)).conversation).toEqual({ id });
      const items = await itemsOf(client, id);
      expect(textsOf(items)).toEqual(["be brief", said, first.output_text, "and?", second!.output_text ?? ""]);
      expect(items.at(-1)!.id!).toBe(second!.output.at(-1)!.id!);
      const seen = await node.requests(marker);
      const contents = seen.map(({ body }) =>
        (body!["messages"] as { content: string }[]).map(({ content }) => content),
      );
      expect(contents).toEqual([
        ["be brief", said],
        ["be brief", said, first.output_text, "and?"],
      ]);
      const counted = await client.responses.inputTokens.count({ model, conversation: id, input: "x" });
      const alone = await client.responses.inputTokens.count({ model, input: "x" });
      expect(counted.input_tokens).toBeGreaterThan(alone.input_tokens + 10);
    },
    timeLimit,
  );

  test(
    "take large items and inputs, which are read beside the main thread",
    async () => {
      const client = clientOf(await newAccount());
      const { id } = await client.conversations.create();
      const large = `${"large ".repeat(150_000)}[[${node.marker("text")}]]`;
      await client.conversations.items.create(id, { items: [{ role: "user", content: large }] });
      const answer = await client.responses.create({ model: "core-3", conversation: id, input: "small" });
      await client.responses.create({ model: "core-3", conversation: id, input: large });
      const texts = textsOf(await itemsOf(client, id));
      expect(texts.map((text) => String(text).length)).toEqual([
        ...[large.length, 5, answer.output_text.length, large.length, answer.output_text.length],
      ]);
    },
    timeLimit,
  );

  test(
    "take what the budget cut, and nothing of an answer that failed or was not waited for",
    async () => {
      const client = clientOf(await newAccount());
      const { id } = await client.conversations.create();
      const ask = (script: string) =>
        client.responses.create({ model, conversation: id, input: `hello [[${node.marker(script)}]]`, stream: true });
      for await (const event of await ask("error-mid-stream")) if (event.type === "response.completed") throw event;
      for await (const event of await ask("endless")) if (event.type === "response.output_text.delta") break;
      expect(await itemsOf(client, id)).toEqual([]);
      let ended = "";
      for await (const event of await ask("length")) ended = event.type;
      expect(ended).toBe("response.incomplete");
      expect(await itemsOf(client, id)).toMatchObject([{ role: "user" }, { role: "assistant", status: "incomplete" }]);
    },
    timeLimit,
  );

  test(
    "lose nothing of requests at once, and everybody sees one order",
    async () => {
      const account = await newAccount();
      const clients = [clientOf(account), clientOf(account, 1)] as const;
      const { id } = await clients[0].conversations.create();
      const asked = Array.from({ length: 12 }, (_, index) => `${index} [[${node.marker("text")}]]`);
      const answers = await Promise.all(
        asked.map((input, index) => clients[index % 2]!.responses.create({ model, conversation: id, input })),
      );
      const outputOf = new Map(answers.map(({ output }, index) => [output[0]!.id, asked[index]!]));
      // Where two gateways want the account's rows for over half a second, an answer is added after its reply.
      const items = await eventually("all are added", async () => {
        const added = await itemsOf(clients[0], id);
        return added.length === 24 && added;
      });
      for (let at = 0; at < items.length; at += 2) {
        expect(textsOf([items[at]!])).toEqual([outputOf.get(items[at + 1]!.id!)]); // each answer behind its question
      }
      expect(new Set(textsOf(items.filter((_, at) => at % 2 === 0)))).toEqual(new Set(asked));
      expect(await itemsOf(clients[1], id)).toEqual(items);
    },
    timeLimit,
  );

  test(
    "that are deleted while an answer runs let it arrive and be charged, with a line in the log",
    async () => {
      const account = await newAccount();
      const client = clientOf(account, 1);
      const { id } = await client.conversations.create();
      await node.define("slow", once(text("Still "), { waitMs: 3_000 }, text("here."), finish("stop")));
      const input = `hello [[${node.marker("slow")}]]`;
      let delivered = "";
      for await (const event of await client.responses.create({ model, conversation: id, input, stream: true })) {
        if (event.type !== "response.output_text.delta") continue;
        if (delivered === "") await client.conversations.delete(id);
        delivered += event.delta;
      }
      expect(delivered).toBe("Still here.");
      expect(await gateways[0].usage(account.email)).toHaveLength(1);
      await eventually("it is told", () =>
        Promise.resolve(gateways[1].output.includes("an answer was not added to its conversation")),
      );
      expect(await refusedAs(client.conversations.retrieve(id))).toMatchObject({ status: 404 });
    },
    timeLimit,
  );

  test(
    "are their account's alone, and refuse what they are not for",
    async () => {
      const [owner, stranger] = await Promise.all([newAccount(), newAccount()]);
      const [client, other] = [clientOf(owner), clientOf(stranger)];
      const { id } = await client.conversations.create({ items: [{ role: "user", content: "secret" }] });
      const [item] = await itemsOf(client, id);
      const asks = (of: OpenAI, conversation: string) => [
        () => of.conversations.retrieve(conversation),
        () => of.conversations.update(conversation, { metadata: {} }),
        () => of.conversations.delete(conversation),
        () => of.conversations.items.list(conversation),
        () => of.conversations.items.create(conversation, { items: [] }),
        () => of.conversations.items.retrieve(item!.id!, { conversation_id: conversation }),
        () => of.conversations.items.delete(item!.id!, { conversation_id: conversation }),
        () => of.responses.create({ model, conversation, input: "x" }),
      ];
      const message = `Conversation with id '${id}' not found.`;
      for (const asked of asks(other, id)) {
        expect(await refusedAs(asked())).toMatchObject({ status: 404, error: { message } });
      }
      expect(textsOf(await itemsOf(client, id))).toEqual(["secret"]);

      // an id of the one is none of the other
      const { id: responseId } = await client.responses.create({ model, input: `hello [[${node.marker("text")}]]` });
      for (const asked of asks(client, responseId)) {
        expect(await refusedAs(asked())).toMatchObject({ status: 404 });
      }
      expect(await refusedAs(client.responses.retrieve(id))).toMatchObject({ status: 404 });
      expect(await refusedAs(client.responses.delete(id))).toMatchObject({ status: 404 });
      expect(await refusedAs(client.responses.create({ model, previous_response_id: id, input: "x" }))).toMatchObject({
        status: 400,
        error: { code: "previous_response_not_found" },
      });

      const rows: (readonly [() => Promise<unknown>, string])[] = [
        [
          () => client.responses.create({ model, conversation: id, previous_response_id: responseId, input: "x" }),
          "conversation: must not be with previous_response_id",
        ],
        [() => client.responses.create({ model, conversation: 1 as never, input: "x" }), "conversation must be"],
        [
          () => client.responses.create({ model, conversation: id, input: [{ type: "compaction_trigger" } as never] }),
          "conversation: is not summed up",
        ],
        [() => client.conversations.create({ items: Array(21).fill({ role: "user", content: "x" }) }), "items must be"],
        [() => client.conversations.create({ items: "x" as never }), "items must be"],
        [
          () => client.conversations.create({ items: [{ role: "cook", content: "x" } as never] }),
          "items[0].role must be",
        ],
        [() => client.conversations.create({ metadata: { a: 1 as never } }), "metadata must be"],
        [() => client.conversations.create({ metadata: { ["k".repeat(65)]: "" } }), "metadata must be"],
        [() => client.conversations.update(id, {} as never), "metadata is missing"],
        [() => client.conversations.items.create(id, {} as never), "items must be"],
        [() => client.conversations.items.list(id, { limit: 101 }), "limit must be"],
        [() => client.conversations.items.list(id, { after: "msg_none" }), "after: 'msg_none' is not in this list"],
      ];
      for (const [asked, reason] of rows) {
        const { status, error } = await refusedAs(asked());
        expect({ status, message: error.message }).toEqual({ status: 400, message: expect.stringContaining(reason) });
      }
      const pairs = Object.fromEntries(Array.from({ length: 17 }, (_, index) => [`key ${index}`, ""]));
      expect(await refusedAs(client.conversations.create({ metadata: pairs }))).toMatchObject({ status: 400 });
      expect(textsOf(await itemsOf(client, id))).toEqual(["secret"]);
    },
    timeLimit,
  );

  test(
    "are in the export of their account, and erased with it",
    async () => {
      const account = await newAccount();
      const client = clientOf(account);
      const { id } = await client.conversations.create({ items: [{ role: "user", content: "to be exported" }] });
      type Export = Readonly<{ stored_responses: readonly { id: string; input: { content: object[] }[] }[] }>;
      const exported = await gateways[0].cli<Export>("accounts", "export", account.email);
      expect(exported.stored_responses).toMatchObject([
        { id, input: [{ content: [{ text: "to be exported" }] }], conversation: { object: "conversation" } },
      ]);
      await gateways[0].cli("accounts", "delete", account.email, "--yes");
      expect(await refusedAs(client.conversations.retrieve(id))).toMatchObject({ status: 401 });
    },
    timeLimit,
  );
});
