// Responses that go on without their clients, as the official packages use them, in a data folder and by two gateways on
// PostgreSQL: every second call goes to the other gateway.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import OpenAI from "openai";
import { temporaryFolder } from "../commands/program.ts";
import { runToEnd } from "../fixtures/children.ts";
import { eventually } from "../fixtures/eventually.ts";
import { type Account, GatewayProcess } from "../fixtures/gateway-process.ts";
import { ScriptedNode } from "../fixtures/node-process.ts";
import { missing } from "../fixtures/optional.ts";
import { startDatabases } from "../fixtures/postgres.ts";
import { nodeTable } from "../fixtures/stack.ts";

const timeLimit = 120_000;
const model = "core-3";
type Event = OpenAI.Responses.ResponseStreamEvent;

describe.each(["a data folder", "PostgreSQL"])("background responses in %s", (where) => {
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
        config: `[server]\nstop_grace_seconds = 1\n${nodeTable(node, 8)}\n[ledger]\ngateway = "${name}"`,
        ...(url === null ? {} : { env: { TOLLGATE_DATABASE_URL: url } }),
        dataFolder: join(folder.path, name),
        threads,
      }),
    );
  beforeAll(async () => {
    node = opened.use(await ScriptedNode.start());
    if (inDatabase) url = await opened.use(await startDatabases()).database("background");
    const first = await start("first", inDatabase ? 1 : 2);
    gateways = [first, inDatabase ? await start("second", 2) : first];
  }, timeLimit);
  afterAll(async () => {
    await opened.disposeAsync();
    folder[Symbol.dispose]();
  }, timeLimit);

  const clientOf = ({ api_key: apiKey }: Account, place: 0 | 1 = 0): OpenAI =>
    new OpenAI({ baseURL: `${gateways[place].url}/v1`, apiKey, maxRetries: 0 });
  const newAccount = (): Promise<Account> => gateways[0].account();
  const statusOf = async (account: Account, id: string, place: 0 | 1 = 0): Promise<string | undefined> =>
    (await clientOf(account, place).responses.retrieve(id)).status;
  const reaches = (account: Account, id: string, status: string, place: 0 | 1 = 0) =>
    eventually(`${id} is ${status}`, async () => (await statusOf(account, id, place)) === status);
  const begin = async (account: Account, script: string, more: object = {}) => {
    const marker = node.marker(script);
    const body = { model, input: `hello [[${marker}]]`, background: true, ...more } as const;
    return { marker, response: await clientOf(account).responses.create({ ...body, stream: false }) };
  };
  const uncharged = async (account: Account): Promise<void> => {
    await eventually("nothing is held", async () => (await gateways[0].show(account.email)).reserved === 0);
    expect(await gateways[0].usage(account.email)).toEqual([]);
  };

  test(
    "are asked for until they have ended, and paid once",
    async () => {
      const account = await newAccount();
      const { response } = await begin(account, "slow", { metadata: { topic: "a" } });
      expect(response).toMatchObject({ background: true, store: true, output: [] });
      expect(["queued", "in_progress"]).toContain(response.status!);
      expect(["queued", "in_progress"]).toContain((await statusOf(account, response.id, 1))!);
      await reaches(account, response.id, "completed");
      const [own, other] = await Promise.all(
        ([0, 1] as const).map((place) => clientOf(account, place).responses.retrieve(response.id)),
      );
      expect(own!.output_text).toBe("tick ".repeat(20));
      expect(own).toMatchObject({
        background: true,
        metadata: { topic: "a" },
        usage: { output_tokens: expect.any(Number) },
      });
      expect(other).toEqual(own!);
      expect(await gateways[0].usage(account.email)).toHaveLength(1);
      const items: object[] = [];
      for await (const item of clientOf(account, 1).responses.inputItems.list(response.id)) items.push(item);
      expect(items).toHaveLength(1);
      const next = await clientOf(account, 1).responses.create({
        model,
        input: "and?",
        previous_response_id: response.id,
      });
      expect(next.status).toBe("completed");
      const stranger = await newAccount();
      for (const place of [0, 1] as const) {
        const { responses } = clientOf(stranger, place);
        for (const call of ["retrieve", "cancel", "delete"] as const) {
          expect(await responses[call](response.id).catch(({ status }: { status: number }) => status)).toBe(404);
        }
      }
      expect((await clientOf(account).responses.cancel(response.id)).status).toBe("completed");
    },
    timeLimit,
  );

  test(
    "stream, and go on where the stream was cut",
    async () => {
      const account = await newAccount();
      const input = `hello [[${node.marker("slow")}]]`;
      const stream = await clientOf(account).responses.create({ model, input, background: true, stream: true });
      const seen: Event[] = [];
      for await (const event of stream) {
        seen.push(event);
        if (seen.length === 8) break; // its client leaves
      }
      const [first] = seen;
      if (first?.type !== "response.created") throw new Error(`the first event is ${first?.type}`);
      const { id } = first.response;
      const from = async (after: number): Promise<Event[]> =>
        Array.fromAsync(await clientOf(account).responses.retrieve(id, { stream: true, starting_after: after }));
      const rest = await from(7);
      const whole = await Array.fromAsync(await clientOf(account).responses.retrieve(id, { stream: true }));
      expect([...seen, ...rest]).toEqual(whole);
      expect(whole.map(({ sequence_number }) => sequence_number)).toEqual(whole.map((_, index) => index));
      expect(whole.at(-1)).toMatchObject({ type: "response.completed", response: { output_text: "tick ".repeat(20) } });
      for (let after = 0; after < whole.length; after++) expect(await from(after)).toEqual(whole.slice(after + 1));
      expect(await gateways[0].usage(account.email)).toHaveLength(1);
      const note = clientOf(account).responses.retrieve(id.replace("resp_", "bg_"));
      expect(await note.catch(({ status }) => status)).toBe(404);
      const unknown = clientOf(account).responses.retrieve("resp_none", { stream: true });
      expect(await unknown.catch(({ status }) => status)).toBe(404);
      if (!inDatabase) return;
      const elsewhere = clientOf(account, 1).responses.retrieve(id, { stream: true });
      expect(await elsewhere.catch(({ message }: Error) => message)).toContain("are not held here");
    },
    timeLimit,
  );

  test.each([0, 1] as const)(
    "are cancelled, and paid for what came until then (gateway %d)",
    async (place) => {
      const account = await newAccount();
      const { marker, response } = await begin(account, "endless");
      await reaches(account, response.id, "in_progress");
      const cancelled = await clientOf(account, place).responses.cancel(response.id);
      expect(cancelled).toMatchObject({ id: response.id, status: "cancelled" });
      expect(cancelled.output_text).toStartWith("tick ");
      await node.closedAt(marker);
      expect(
        (
          await clientOf(account, place)
            .responses.cancel(response.id)
            .catch(({ status }) => ({ status }))
        ).status,
      ).toBe(place === 0 || !inDatabase ? "cancelled" : (400 as never));
      for (const each of [0, 1] as const) expect(await statusOf(account, response.id, each)).toBe("cancelled");
      const [row, ...others] = await eventually("it is paid", async () => {
        const rows = await gateways[0].usage(account.email);
        return rows.length > 0 ? rows : null;
      });
      expect([row!.output > 0, others]).toEqual([true, []]);

      const early = await newAccount();
      const silent = await begin(early, "silent-60s");
      expect((await clientOf(early, place).responses.cancel(silent.response.id)).status).toBe("cancelled");
      await uncharged(early);
    },
    timeLimit,
  );

  test.each([0, 1] as const)(
    "are deleted while they run (gateway %d)",
    async (place) => {
      const account = await newAccount();
      const { marker, response } = await begin(account, "endless");
      await reaches(account, response.id, "in_progress");
      await clientOf(account, place).responses.delete(response.id);
      await node.closedAt(marker);
      await eventually("nothing is held", async () => (await gateways[0].show(account.email)).reserved === 0);
      for (const place of [0, 1] as const) {
        const { responses } = clientOf(account, place);
        expect(await responses.retrieve(response.id).catch(({ status }) => status)).toBe(404);
      }
      await eventually("it is paid", async () => (await gateways[0].usage(account.email)).length === 1);
    },
    timeLimit,
  );

  test(
    "fail with a reason, and are free, as those are that a restart ends",
    async () => {
      const account = await newAccount();
      const refused = await begin(account, "text", { store: false }).catch(({ message }: Error) => message);
      expect(refused).toContain("background: needs a stored response");
      const { response } = await begin(account, "dies-rst");
      await reaches(account, response.id, "failed");
      // Another gateway knows the end when it is stored.
      await reaches(account, response.id, "failed", 1);
      expect((await clientOf(account, 1).responses.retrieve(response.id)).error).toEqual({
        code: "server_error",
        message: "The model stopped answering. Please retry.",
      });
      await uncharged(account);
      for (const signal of ["SIGTERM", "SIGKILL"] as const) {
        const { response } = await begin(account, "endless");
        await reaches(account, response.id, "in_progress");
        if (inDatabase) expect(await statusOf(account, response.id, 1)).toBe("in_progress");
        await gateways[0].kill(signal);
        if (inDatabase) await reaches(account, response.id, "failed", 1);
        await gateways[0].restart();
        const ended = await clientOf(account).responses.retrieve(response.id);
        expect(ended).toMatchObject({ id: response.id, status: "failed", error: { code: "server_error" } });
        expect(
          await clientOf(account)
            .responses.cancel(response.id)
            .catch(({ status }) => status),
        ).toEqual(signal === "SIGTERM" ? 400 : ended);
        await uncharged(account);
        expect(await clientOf(account).responses.delete(response.id)).toBeDefined();
        expect(
          await clientOf(account)
            .responses.retrieve(response.id)
            .catch(({ status }) => status),
        ).toBe(404);
      }
    },
    timeLimit,
  );

  const python = process.env["TOLLGATE_PYTHON"] ?? join(import.meta.dir, "../clients/.venv/bin/python");
  test.skipIf(missing("the Python client", existsSync(python), "make test/clients/.venv with requirements.txt"))(
    "of the official Python client",
    async () => {
      const { api_key } = await newAccount();
      const markers = { slow: [node.marker("slow"), node.marker("slow")], endless: node.marker("endless") };
      const stdin = JSON.stringify({ base: `${gateways[0].url}/v1`, key: api_key, markers });
      const program = join(import.meta.dir, "../clients/background_python.py");
      const { code, stdout, stderr } = await runToEnd([python, program], { stdin });
      expect({ code, stderr }).toMatchObject({ code: 0 });
      expect(JSON.parse(stdout)).toEqual(["completed", "completed", "cancelled"]);
    },
    timeLimit,
  );
});
