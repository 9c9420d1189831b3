// One client's WebSocket. Each `response.create` becomes a request that passes the whole spine; responses of one stream
// come one after the other, those of several streams at once. What the socket adds is memory: the conversations that are
// stored nowhere else.
import type { ByteBudget } from "../../core/byte-budget.ts";
import { isRecord } from "../../core/is-record.ts";
import { jsonMembers, stringOf } from "../../core/json-members.ts";
import { busyRetrySeconds } from "../../core/limits.ts";
import { parseOutsideJson } from "../../core/outside-json.ts";
import { refuse } from "../../core/refusals.ts";
import type { AccountId, Principal, Refusal } from "../../core/types.ts";
import type { Dialect, RequestHead } from "../../dialects/dialect.ts";
import { continuesHeader } from "../../dialects/stored-responses.ts";
import { ArrivedHead } from "../incoming.ts";
import type { EventSink } from "../outlets/stream-outlet.ts";
import type { Connection, SocketHandler } from "../peer-address.ts";
import { refusalReply } from "../reply.ts";
import { inStream, SocketTurn, type Steer } from "./socket-turn.ts";

/** OpenAI's limits. */
const activeMax = 16;
const streamsMax = 32;
/** Messages that wait for their turn; OpenAI names no limit. */
const waitingMax = 256;
const steersMax = 16;
const steerMaxLength = 256 * 1024;
/** A client that sends without reading is cut. */
const unreadMaxBytes = 16 * 1024 * 1024;

const read = new Set(["type", "stream_id", "previous_response_id", "conversation", "input", "background"]);
const noBackground = refuse("malformed", { reason: "background: is not for WebSockets; send a POST request" });
const ofEnd = new Set(["response"]);
const ofResponse = new Set(["id", "store", "output"]);

/** A message's request, whose events go into the sink. */
export type Answer = (
  request: Request,
  connection: Connection,
  dialect: Dialect,
  head: RequestHead,
  sink: EventSink,
) => Promise<Response>;

export type SocketParts = Readonly<{
  answer: Answer;
  dialect: Dialect;
  /** The address and headers of every message. */
  head: Request;
  account: AccountId;
  connection: Connection;
  kept: ByteBudget;
  waiting: ByteBudget;
  openedAt: number;
  /** Whose key it is now. */
  asker(): Promise<Principal | Refusal>;
  newId(): string;
  closed(): void;
}>;

/** A `response.create` as it came, and its members; `steers`: the input is theirs. */
type Create = Readonly<{ text: string; members: ReadonlyMap<string, string>; steers: readonly Steer[] }>;

/**
 * A response that the store does not have. `items`: the text inside an array of all items since the stored response
 * `base`, or since the beginning.
 */
type Kept = Readonly<{ id: string; base: string | null; items: string; bytes: number }>;

/** The stream of responses that follow each other. */
type Stream = {
  readonly id: string | null;
  readonly waiting: Create[];
  turn: SocketTurn | null;
  /** The last response. */
  lastId: string | null;
  kept: Kept | null;
  /** What steers a response that waits for its client's results. */
  steers: readonly Steer[];
};

export class ClientSocket implements SocketHandler {
  readonly openedAt: number;
  readonly account: AccountId;
  readonly asker: SocketParts["asker"];
  readonly #parts: SocketParts;
  readonly #streams = new Map<string | null, Stream>();
  /** Aborted when the client has left. */
  readonly #running = new Set<AbortController>();
  #socket: Bun.ServerWebSocket<unknown> | null = null;
  #caughtUp: PromiseWithResolvers<void> | null = null;
  #waiting = 0;
  #retired: Readonly<{ refusal: Refusal; code: number }> | null = null;
  #isOver = false;

  constructor(parts: SocketParts) {
    this.#parts = parts;
    this.openedAt = parts.openedAt;
    this.account = parts.account;
    this.asker = parts.asker;
  }

  open(socket: Bun.ServerWebSocket<unknown>): void {
    this.#socket = socket;
    if (this.#retired !== null) void this.#leaveIfIdle();
  }

  message(socket: Bun.ServerWebSocket<unknown>, message: string | Buffer): void {
    if (socket.getBufferedAmount() > unreadMaxBytes) return socket.terminate();
    const text = typeof message === "string" ? message : message.toString();
    const members = jsonMembers(text, read);
    const type = members === null ? null : stringOf(members.get("type"));
    if (type === "response.create") this.#create({ text, members: members!, steers: [] });
    else if (type === "response.steer") this.#steer(text, members!);
    // Codex's: it has read a response.
    else if (type !== "response.processed") {
      const reason = "type must be response.create or response.steer, and the message an object";
      void this.#refuse(refuse("malformed", { reason }), null);
    }
  }

  drain(): void {
    if (this.#socket!.getBufferedAmount() > 0) return;
    this.#caughtUp?.resolve();
    this.#caughtUp = null;
  }

  close(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    for (const controller of this.#running) controller.abort();
    for (const stream of this.#streams.values()) {
      for (const create of stream.waiting) this.#leave(create);
      stream.waiting.length = 0;
      this.#forget(stream);
    }
    this.#caughtUp?.resolve();
    this.#parts.closed();
  }

  /** Nothing more begins here; it closes once nothing runs, and says why. */
  async retire(refusal: Refusal, code: number): Promise<void> {
    if (this.#retired !== null) return;
    this.#retired = { refusal, code };
    for (const stream of this.#streams.values()) {
      for (const create of stream.waiting.splice(0)) {
        this.#leave(create);
        await this.#refuse(refusal, stream.id);
      }
    }
    await this.#leaveIfIdle();
  }

  async #leaveIfIdle(): Promise<void> {
    if (this.#retired === null || this.#running.size > 0 || this.#socket === null || this.#isOver) return;
    const { refusal, code } = this.#retired;
    await this.#refuse(refusal, null);
    this.#socket.close(code, refusal.refusal);
  }

  #create(create: Create): void {
    const given = create.members.get("stream_id");
    const id = given === undefined ? null : stringOf(given);
    if (given !== undefined && !isStreamId(id)) return void this.#refuse(refuse("invalid_stream_id"), null);
    if (this.#retired !== null) return void this.#refuse(this.#retired.refusal, id);
    if (create.members.get("background") === "true") return void this.#refuse(noBackground, id);
    let stream = this.#streams.get(id);
    if (stream === undefined) {
      if (id !== null && this.#streams.size - Number(this.#streams.has(null)) >= streamsMax) {
        return void this.#refuse(refuse("websocket_stream_limit_reached"), id);
      }
      stream = { id, waiting: [], turn: null, lastId: null, kept: null, steers: [] };
      this.#streams.set(id, stream);
    }
    if (this.#waiting >= waitingMax || !this.#parts.waiting.enter(this.account, create.text.length)) {
      return void this.#refuse(refuse("busy", { seconds: busyRetrySeconds }), id);
    }
    this.#waiting += 1;
    stream.waiting.push(create);
    this.#next();
  }

  #leave({ text, steers }: Create): void {
    if (steers.length > 0) return; // it did not come from the client
    this.#waiting -= 1;
    this.#parts.waiting.leave(this.account, text.length);
  }

  #next(): void {
    for (const stream of this.#streams.values()) {
      if (this.#running.size >= activeMax) return;
      if (stream.turn !== null || stream.waiting.length === 0) continue;
      const create = stream.waiting.shift()!;
      this.#leave(create);
      const controller = new AbortController();
      this.#running.add(controller);
      stream.turn = new SocketTurn(this.#frames, stream.id);
      void this.#run(stream, stream.turn, create, controller.signal).finally(() => {
        this.#running.delete(controller);
        stream.turn = null;
        if (this.#isOver) return;
        this.#next();
        void this.#leaveIfIdle();
      });
    }
  }

  async #run(stream: Stream, turn: SocketTurn, create: Create, signal: AbortSignal): Promise<void> {
    const { members } = create;
    const previousId = stringOf(members.get("previous_response_id"));
    const kept = previousId === null ? null : this.#find(previousId);
    const awaited = stream.steers;
    stream.steers = [];
    const continues = awaited.length > 0 && previousId === stream.lastId;
    if (!continues) for (const steer of awaited) failed(turn, steer, stream.lastId!, "response_not_active");
    const steers = continues ? awaited : create.steers;
    const given = itemsOf(members.get("input"));
    const input = [kept?.items, ...steers.map(({ items }) => items), create.steers.length > 0 ? "" : given];
    const items = input.filter((part) => part != null && part !== "").join(",");
    const base = kept === null ? previousId : kept.base;
    let more = '"stream":true';
    // Where the input is no list, its own words are refused.
    if ((kept !== null || steers.length > 0) && given !== null) {
      more += `,"input":[${items}],"previous_response_id":${JSON.stringify(base)}`;
    }
    const body = `${create.text.slice(0, create.text.lastIndexOf("}"))},${more}}`;
    const reply = await this.#answer(turn, body, kept?.id ?? null, signal);
    if (this.#isOver) return;
    const end = turn.last === null ? null : jsonMembers(turn.last, ofEnd)?.get("response");
    const response = end === undefined || end === null ? null : jsonMembers(end, ofResponse);
    if (reply !== null || response === null || turn.last!.startsWith('{"type":"response.failed"')) {
      if (kept !== null && kept === stream.kept) this.#forget(stream);
      for (const steer of [...steers, ...turn.steers]) {
        const code = steers.includes(steer) ? "successor_creation_failed" : "response_not_active";
        failed(turn, steer, turn.responseId ?? previousId!, code);
      }
      if (reply === null) return;
      if (create.steers.length === 0) await this.#sayReply(reply, stream.id);
      if (reply.status === 401) await this.retire(refuse("invalid_api_key"), 1008);
      return;
    }
    const id = stringOf(response.get("id"))!;
    const output = itemsOf(response.get("output")) ?? "";
    stream.lastId = id;
    this.#forget(stream);
    if (response.get("store") !== "true" && (members.get("conversation") ?? "null") === "null") {
      this.#keep(stream, id, base, output === "" ? items : items === "" ? output : `${items},${output}`);
    }
    if (this.#retired !== null) for (const steer of turn.steers) failed(turn, steer, id, "response_not_active");
    else if (turn.steers.length > 0) this.#goOn(stream, turn, create, id, output);
  }

  /** Steering begins another response, or waits where the client owes results of calls. */
  #goOn(stream: Stream, turn: SocketTurn, create: Create, id: string, output: string): void {
    const owed = (parseOutsideJson(`[${output}]`) as { type: string; call_id?: string }[]).filter(
      ({ type }) => type === "function_call" || type === "custom_tool_call",
    );
    if (owed.length === 0) {
      const members = new Map(create.members).set("previous_response_id", JSON.stringify(id));
      stream.waiting.unshift({ text: create.text, members, steers: turn.steers });
      return;
    }
    stream.steers = turn.steers;
    const stubs = owed.map(({ type, call_id }) => ({ type: `${type}_output`, call_id }));
    for (const steer of turn.steers) {
      const pending = { reason: "waiting_for_required_input", required_input: stubs };
      turn.say("response.steer.pending", `"steer":${named(steer, id)},${JSON.stringify(pending).slice(1, -1)}`);
    }
  }

  /** Null where the events have gone out; else the reply that is no stream. */
  async #answer(turn: SocketTurn, body: string, keptId: string | null, signal: AbortSignal): Promise<Response | null> {
    const { answer, head, connection, dialect, newId } = this.#parts;
    const request = new Request(head, { method: "POST", body, signal });
    request.headers.set("content-length", String(Buffer.byteLength(body)));
    if (keptId !== null) request.headers.set(continuesHeader, keptId);
    try {
      const arrived = new ArrivedHead(request, dialect.endpoint, "");
      const reply = await answer(request, connection, dialect, arrived, turn);
      if (reply.status !== 200) return reply;
      // Another thread's.
      if (reply.body !== null) for await (const bytes of reply.body) await turn.write(bytes);
      return null;
    } catch {
      return refusalReply(dialect, refuse("internal"), newId());
    }
  }

  #find(id: string): Kept | null {
    for (const { kept } of this.#streams.values()) if (kept?.id === id) return kept;
    return null;
  }

  /** Where there is no room, its client must send the conversation again. */
  #keep(stream: Stream, id: string, base: string | null, items: string): void {
    const bytes = 2 * items.length;
    if (this.#parts.kept.enter(this.account, bytes)) stream.kept = { id, base, items, bytes };
  }

  #forget(stream: Stream): void {
    if (stream.kept !== null) this.#parts.kept.leave(this.account, stream.kept.bytes);
    stream.kept = null;
  }

  #steer(text: string, members: ReadonlyMap<string, string>): void {
    const target = stringOf(members.get("previous_response_id")) ?? "";
    const streams = [...this.#streams.values()];
    const turn = streams.find(({ turn }) => turn?.responseId === target)?.turn ?? null;
    const input = steeringOf(text);
    const fault = (): string | null => {
      if (input === null) return "invalid_input";
      const isOver = turn === null ? streams.some(({ lastId }) => lastId === target) : turn.last !== null;
      if (isOver) return "response_already_completed";
      if (turn === null) return "response_not_found";
      return turn.steers.length < steersMax ? null : "too_many_pending_steers";
    };
    const code = fault();
    const id = code === null ? `steer_${crypto.randomUUID().replaceAll("-", "")}` : null;
    const steer = { id, input: input ?? "null", items: itemsOf(input ?? undefined)! };
    if (code !== null) return failed(turn ?? new SocketTurn(this.#frames, null), steer, target, code);
    turn!.steers.push(steer);
    turn!.say("response.steer.accepted", `"steer":${named(steer, target)}`);
  }

  readonly #frames = {
    send: (frames: readonly string[]): number | Promise<number> => {
      const socket = this.#socket;
      if (socket === null || this.#isOver) return 0;
      socket.cork(() => {
        for (const frame of frames) socket.sendText(frame);
      });
      if (socket.getBufferedAmount() === 0) return frames.length;
      this.#caughtUp ??= Promise.withResolvers();
      return this.#caughtUp.promise.then(() => frames.length);
    },
    fail: (): void => {
      if (!this.#isOver) this.#socket?.terminate();
    },
  };

  #refuse(refusal: Refusal, streamId: string | null): Promise<void> {
    return this.#sayReply(refusalReply(this.#parts.dialect, refusal, this.#parts.newId()), streamId);
  }

  /** An error reply as an event. */
  async #sayReply(reply: Response, streamId: string | null): Promise<void> {
    const body = await reply.text();
    if (body === "") return; // to a client that has left
    const { error } = parseOutsideJson(body) as { error: object };
    const headers = Object.fromEntries(reply.headers);
    delete headers["content-type"];
    const event = JSON.stringify({ type: "error", status: reply.status, error: { ...error, headers }, headers });
    if (this.#isOver || this.#socket === null) return;
    this.#socket.sendText(inStream(event, streamId));
  }
}

const isStreamId = (id: string | null): id is string => id !== null && /^[\w.-]{1,256}$/.test(id);

/** The text inside the array that an input stands for: "" for none, null where it is no input. */
function itemsOf(input: string | undefined): string | null {
  if (input === undefined || input === "null") return "";
  if (input.startsWith("[")) return input.slice(1, -1).trim();
  if (!input.startsWith('"')) return null;
  return `{"type":"message","role":"user","content":[{"type":"input_text","text":${input}}]}`;
}

/** A text, or messages of the user and nothing else, as JSON; null where the event holds anything else. */
function steeringOf(event: string): string | null {
  if (event.length > steerMaxLength) return null;
  try {
    const { type: _, previous_response_id: __, input, ...others } = parseOutsideJson(event) as Record<string, unknown>;
    const isMessage = (item: unknown): boolean =>
      isRecord(item) && item.role === "user" && (item.type ?? "message") === "message";
    const isInput = typeof input === "string" || (Array.isArray(input) && input.length > 0 && input.every(isMessage));
    return isInput && Object.keys(others).length === 0 ? JSON.stringify(input) : null;
  } catch {
    return null;
  }
}

const named = ({ id }: Steer, previousId: string): string => JSON.stringify({ id, previous_response_id: previousId });

const steerFaults: Readonly<Record<string, string>> = {
  response_not_found: "The response is not available on this connection.",
  invalid_input: "Steering takes previous_response_id and input, a text or messages of the user.",
  too_many_pending_steers: "Too much steering input waits for the response.",
  response_already_completed: "The response has completed.",
  response_not_active: "The response takes no steering input anymore.",
  successor_creation_failed: "The response that the input steers to could not be created.",
};

function failed(turn: SocketTurn, { id, input }: Steer, previousId: string, code: string): void {
  const steer = JSON.stringify({ id: id ?? undefined, previous_response_id: previousId });
  const error = JSON.stringify({ type: "invalid_request_error", code, message: steerFaults[code] });
  turn.say("response.steer.failed", `"steer":${steer.slice(0, -1)},"input":${input}},"error":${error}`);
}
