// Runs synthetic streams through the code that serves requests, after a start: code runs slowly until it was compiled,
// and without this the first 200 chats that begin at once wait 180 to 240 ms for their first token instead of 80 to 130.
//
// The classes are the real ones, since compiled code belongs to functions and not to instances; the instances are of no
// use to others. Their journal is on no disk, their node in memory, and their metrics and log are not read.
import { Admission } from "../../account/money/admission.ts";
import { Flood } from "../../account/money/flood.ts";
import { hashApiKey, Keys, mintApiKey } from "../../account/people/keys.ts";
import { Ledger } from "../../account/money/ledger.ts";
import type { AccountRecord, AccountRecords } from "../../account/records.ts";
import { assert } from "../../core/assert.ts";
import { embeddedCatalog, usualSampleModel } from "../../core/catalog.ts";
import { systemClock } from "../../core/clock.ts";
import { refuse } from "../../core/refusals.ts";
import type { Endpoint } from "../../core/types.ts";
import { Dialects } from "../../dialects/registry.ts";
import { Inference } from "../../http/inference.ts";
import { KeyHeaders } from "../../http/key-headers.ts";
import { Metrics } from "../../http/metrics/metrics.ts";
import { RequestWatch } from "../../http/metrics/request-watch.ts";
import type { Dial } from "../../nodes/client/dial.ts";
import { NodePool } from "../../nodes/queue/pool.ts";
import { BatchingJournal, type Storage } from "../../store/ledger/journal.ts";
import { ModelHabits } from "../../tools/model-habits.ts";

/**
 * Each round runs as many streams of each dialect as its number, up to the most: 212 in all. 50 rounds gain 5 ms of 80
 * for 150 ms more CPU.
 */
export const warmUpRounds = 30;
const warmUpAtOnceMax = 8;
/** Between two rounds, so that real requests have their turn. */
const warmUpPauseMs = 2;
/** How long to wait for a busy gateway, which warms itself up. */
const warmUpPatienceMs = 10_000;

export type WarmUpOptions = Readonly<{
  /** Whether no request is open: real ones go first. */
  isIdle(): boolean;
  /** Ends it, as does a gateway that is busy for `patienceMs`. */
  signal: AbortSignal;
  patienceMs?: number;
}>;

const ask = { model: usualSampleModel, stream: true };
const messages = [{ role: "user", content: "Count." }];
const asks: readonly (readonly [Endpoint, object])[] = [
  ["/v1/chat/completions", { ...ask, messages, max_tokens: 100 }],
  ["/v1/messages", { ...ask, messages, max_tokens: 100 }],
  ["/v1/responses", { ...ask, input: "Count.", max_output_tokens: 100 }],
];

/** Resolves with the number of streams that were run; rejects where one was refused, which then all were. */
export async function warmUp({ isIdle, signal, patienceMs = warmUpPatienceMs }: WarmUpOptions): Promise<number> {
  const gateway = privateGateway();
  let streams = 0;
  let waitedMs = 0;
  try {
    for (let round = 0; round < warmUpRounds; round++) {
      const key = gateway.newKey();
      for (const [path, body] of asks) {
        for (let idle = false; !idle;) {
          await Bun.sleep(warmUpPauseMs);
          idle = isIdle();
          if (!idle) waitedMs += warmUpPauseMs;
          if (signal.aborted || waitedMs >= patienceMs) return streams;
        }
        // The first of all take the longest, some 40 ms, and go alone.
        const atOnce = Math.min(warmUpAtOnceMax, round + 1);
        const replies = Array.from({ length: atOnce }, () => gateway.request(path, key, body));
        for (const status of await Promise.all(replies))
          assert(status === 200, `warming up is answered with ${status}`);
        streams += atOnce;
      }
    }
    Bun.gc(true); // 2 MB
    return streams;
  } finally {
    await gateway.close();
  }
}

const unset = { keyEnding: null, passwordHash: null, keyUsedAt: null, disabledAt: null, costCenter: null };
const nothing = { ...unset, mailAddress: null, language: null, mailKinds: null };

function privateGateway() {
  const clock = systemClock;
  const catalog = embeddedCatalog();
  const accounts: AccountRecord[] = [];
  const ofHash = (hash: string): AccountRecord | null => accounts.find(({ keyHash }) => keyHash === hash) ?? null;
  // All that is asked of accounts that were never used before.
  const asked = {
    byId: (id: number) => accounts[id - 1] ?? null,
    byKeyHash: ofHash,
    keyByHash: () => null,
    used: () => 0,
  };
  const records = asked satisfies Partial<AccountRecords> as unknown as AccountRecords;
  const ledger = new Ledger(records, catalog.plans);
  const journal = new BatchingJournal(nowhere, ledger, clock);
  const config = {
    name: "nobody",
    url: "http://127.0.0.1/v1",
    apiKey: null,
    slots: warmUpAtOnceMax,
    models: { "*": "" },
  };
  const poolOptions = { clock, queueMaxWaitMs: 1_000, log: () => {}, looks: false, dial: toNobody };
  // The first burst finds no open connections either.
  const pool = new NodePool([config], { ...poolOptions, limits: { idleSocketMs: 1 } });
  const dialects = new Dialects({ sealingKey: new Uint8Array(32), clock, storesResponses: true });
  const keyHeaders = new KeyHeaders(dialects.keyHeaders);
  const inference = new Inference(
    {
      keys: new Keys(records, ledger),
      admission: new Admission(ledger, new Flood(), journal, ""),
      habits: new ModelHabits(),
      pool,
      catalog,
      clock,
      storedResponses: keepsNone,
      log: () => {},
    },
    {
      dialects,
      keyHeaders,
      counts: { estimateOfAsk: () => Promise.resolve({ tokens: 2, exact: false, tokenizer: "" }) },
      watch: new RequestWatch({ metrics: new Metrics(), clock, log: () => {}, logsRequests: false, tracer: null }),
      addressHeader: null,
    },
  );
  type Handle = Parameters<Parameters<typeof inference.addRoutesTo>[0]["add"]>[2];
  const routes = new Map<string, Handle>();
  const api = {
    add: (_method: "GET" | "POST" | "DELETE", path: Endpoint, handle: Handle) => (routes.set(path, handle), api),
  };
  inference.addRoutesTo(api);
  const connection = { timeout() {}, requestIP: () => null, upgrade: () => false, url: new URL("http://127.0.0.1/") };
  return {
    newKey(): string {
      const key = mintApiKey();
      const of = { id: accounts.length + 1, email: "", plan: Object.keys(catalog.plans)[0]!, keyHash: hashApiKey(key) };
      accounts.push({ ...of, ...nothing, operator: false, team: false, credit: 1e9, createdAt: 0, keyCreatedAt: 0 });
      return key;
    },
    /** The status of the reply, which is read to its end. */
    async request(path: Endpoint, key: string, ask: object): Promise<number> {
      const body = JSON.stringify(ask);
      const headers = { authorization: `Bearer ${key}`, "content-length": `${body.length}` };
      const request = new Request(`http://127.0.0.1${path}`, { method: "POST", headers, body });
      const reply = await routes.get(path)!(request, connection, "");
      await reply.arrayBuffer();
      return reply.status;
    },
    async close(): Promise<void> {
      await inference.finish(0);
      await pool.close();
      await journal.close();
    },
  };
}

const keepsNone = { keep() {}, find: () => Promise.resolve(refuse("busy", { seconds: 1 })) };

/** Takes every batch and keeps none. */
const nowhere: Storage = {
  writable: true,
  commit: (_batch, _patienceMs, resolved) => void setImmediate(() => resolved("committed")),
  close: () => Promise.resolve(),
};

const event = (choices: readonly object[], more?: object): string => {
  const text = `data: ${JSON.stringify({ id: "chatcmpl-0", object: "chat.completion.chunk", created: 0, model: "", choices, ...more })}\n\n`;
  return `${text.length.toString(16)}\r\n${text}\r\n`;
};
const choice = (delta: object, reason: string | null): string =>
  event([{ index: 0, delta, logprobs: null, finish_reason: reason }]);
const usage = { prompt_tokens: 2, completion_tokens: 3, total_tokens: 5 };
/** An answer as a node's reads bring it. */
const reads = [
  `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n${choice({ role: "assistant", content: "" }, null)}`,
  ...[" one", " two", " three"].map((content) => choice({ content }, null)),
  `${choice({}, "stop")}${event([], { usage })}e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n`,
].map((text) => Buffer.from(text));

/** Connections to a node in memory, where each read is a turn of the event loop. */
const toNobody: Dial = (_origin, listener) => {
  const answer = (read: number): void => {
    listener.received(reads[read]!);
    if (read + 1 < reads.length) setImmediate(answer, read + 1);
  };
  const socket = {
    fd: -1,
    write(_bytes: unknown, _from?: number, length = 0) {
      setImmediate(answer, 0);
      return length;
    },
    pause() {},
    resume() {},
    terminate() {},
  };
  setImmediate(() => listener.opened(socket as unknown as Parameters<typeof listener.opened>[0]));
};
