// A dialect as one value: the facts that the rest of the gateway must know, how it reads a request into an Ask, and how
// it writes an answer's pieces as its own events or JSON. A dialect knows no balance, node, database or server.
import type { Priority } from "../core/priority.ts";
import type { Clock } from "../core/clock.ts";
import type { ByteWriter } from "../core/byte-writer.ts";
import type { KnownModels } from "../core/catalog.ts";
import { endUserName } from "../core/end-user.ts";
import type { RateLeft } from "../core/rates-left.ts";
import { isRefusal, refusals } from "../core/refusals.ts";
import { tagsIn } from "../core/request-tags.ts";
import type {
  Ask,
  CoderBilling,
  Endpoint,
  FinishReason,
  Model,
  ModelKind,
  Ms,
  Piece,
  Refusal,
  Usage,
} from "../core/types.ts";
import { withPreset } from "./request/preset.ts";
import type { Earlier, References, StoredResponse } from "./stored-responses.ts";

/** A reply's identity, which every event repeats: minted by the gateway, never taken from a node. */
export type ReplyIdentity = Readonly<{
  requestId: string;
  createdSeconds: number;
  /** The request's urgency; absent where it did not ask for one. */
  priority?: Priority | undefined;
}>;

/** What a dialect needs from the server that speaks it. */
export type DialectContext = Readonly<{
  /** `sealingKeyBytes` random bytes, the same in every process and after every restart. */
  sealingKey: Uint8Array;
  clock: Clock;
  /** True if responses are stored (see `StoredResponses`). */
  storesResponses: boolean;
}>;

/** The end of an answer as a client sees it. */
export type AnswerEnd = Readonly<{ reason: FinishReason; stopSequence: string | null; usage: Usage }>;

/** A reply as the events of a stream, or as one JSON document: the collected stream. */
export type ReplyForm = "events" | "whole";

/**
 * Writes one reply. Each result is zero or more whole server-sent events. In the form "whole" there are none, and `end`
 * returns the reply.
 */
export interface Encoder {
  /** A sign of life while nothing else can be sent; valid before and between all events. */
  keepAlive(): string;
  piece(piece: Piece): string;
  /**
   * Writes the event of a text or reasoning literal that lies in `bytes` from `start` to `end` (see `Sink.literal`) if
   * nothing else must be written. Otherwise returns false and writes nothing, and the literal must come as a piece.
   */
  literal?(kind: "text" | "reasoning", bytes: Uint8Array, start: number, end: number, out: ByteWriter): boolean;
  /** The token count of the request's input, for an encoder that shows it at the start; called at most once, maybe too late. */
  inputCounted?(tokens: number): void;
  /** The last events; called once, after the charge is on disk. */
  end(end: AnswerEnd): string;
  /** The same in parts, for a reply that may be too large for one text; parts that were returned are no longer kept. */
  parts?(end: AnswerEnd): Iterator<string>;
  /** The dialect's error event; called instead of `end`, never followed by a terminator. */
  failure(refusal: Refusal): string;
  /** The type of a reply that is not JSON, and of a stream that has no events: that one is the pieces' bytes. */
  contentType?(): string;
  /** Present where an answer may go on without its client. */
  background?: BackgroundEncoder;
}

export type BackgroundEncoder = Readonly<{
  /** The first events, before anything came. */
  begin(): string;
  /** What is stored until the end, and shown as JSON text. */
  stored(status: "queued" | "in_progress"): StoredResponse;
  /** The last events where its client ended it: called instead of `end`. */
  cancelled(): string;
}>;

/** Where requests of a dialect arrive: POST to `path`, and to the addresses that clients build from it and a base address. */
type DialectRoute = Readonly<{
  /** At or below the endpoint; a `*` is what the dialect reads from it: "/v1beta/models/*:generateContent". */
  path: Endpoint;
  /** The reply of a route that counts a request's input tokens, which is free, instead of answering it. */
  counted?: (tokens: number) => object;
}>;

/** What others must know about a dialect. They receive it as data, because most of them must not know dialects. */
type DialectFacts = Readonly<{
  /** Unique among dialects; it tells a Worker which one to use. */
  name: string;
  /** Its name in usage, metrics and logs. Errors at or below it have the dialect's form. */
  endpoint: Endpoint;
  routes: readonly DialectRoute[];
  /** What its requests use models for; flood protection counts them by it. */
  modelKind: ModelKind;
  /** Whether a request to a model of the coder tier uses up one of the account's calls or costs its tokens. */
  coderBilling: CoderBilling;
  /** Fields of its bodies that distinguish it where the address does not. */
  bodyFields: readonly string[];
  /** Headers in which its clients send the key beside `Authorization: Bearer`, in lower case. They work on every route. */
  keyHeaders: readonly string[];
  /** Headers that only its clients send: they identify a client where the address names no dialect. */
  clientHeaders: readonly string[];
  /** What precedes the stem of the request's id in the id of a reply. */
  replyIdPrefix: string;
  /** True if its requests also come as messages of a WebSocket, which a GET of its endpoint opens. */
  hasSockets: boolean;
  /** True if its responses can be stored and fetched by id below its endpoint. */
  storesResponses: boolean;
  /** Headers in which its clients read what is left of a minute, beside the usual ones; `at`: wall clock. Absent: none. */
  rateHeaders?: (unit: "requests" | "tokens", left: RateLeft, at: Ms) => Iterable<readonly [string, string]>;
  /** A model's capabilities in GET /v1/models under its clients' names; absent: the usual names. */
  capabilities?: (model: Model) => object;
}>;

/** Where a request arrived and what came with it, apart from its body. */
export type RequestHead = Readonly<{
  /** The path of the dialect's route. */
  route: Endpoint;
  /** The decoded part of the address at its `*`; "" without one. */
  id: string;
  /** The query with its question mark, or "". */
  search: string;
  headers: Headers;
}>;

export type DialectRequest = Readonly<{
  head: RequestHead;
  /** Parsed but not checked yet. */
  body: unknown;
  /** The size as sent. */
  bodyBytes: number;
  catalog: KnownModels;
  /** What was found for its references. */
  earlier?: Earlier | undefined;
  /** Whether to read the end user. */
  namesUser?: boolean;
}>;

/** A checked request, and what writes its reply. */
export type Reading = Readonly<{
  ask: Ask;
  writer: Writer;
  /** The end user, as endUserName of core/end-user.ts returns it. Absent where `namesUser` is not set. */
  endUser?: string | null;
}>;

/** Takes a finished response at the moment its end is written. */
export type Keep = (response: StoredResponse) => void;

/** Writes the reply of one request. */
export interface Writer {
  encoder(reply: ReplyIdentity, form: ReplyForm, keep?: Keep | null): Encoder;
  /** What goes to another thread, where the same dialect unpacks it. */
  pack(): Packed;
}

/** An Ask, and what its dialect remembers about the request, without its turns and without class instances. */
export type PackedAsk = Omit<Ask, "turns" | "model" | "prepared">;
export type Packed = Readonly<{
  ask: PackedAsk;
  /** The parts that the other thread takes as objects, each once. */
  settings: object;
  /** What each event about the whole reply repeats, as JSON text. */
  echo: string;
}>;

export interface Dialect extends DialectFacts {
  /** What an unchecked body refers to; absent in dialects whose requests are self-contained. */
  references?(body: unknown): References | null;
  /** The end user that a checked body names, of any type. */
  endUser(body: object): unknown;
  /** A refusal names the wrong field. */
  read(request: DialectRequest): Reading | Refusal;
  /** A request that another thread read; `ask` is its Ask on this thread. */
  unpack(packed: PackedAsk, ask: Ask): Reading;
  /** The HTTP status of a refusal in this dialect; `ask` is null where the body was not read. */
  statusOf(refusal: Refusal, ask: Ask | null): number;
  /** The error body as JSON text. */
  errorBody(refusal: Refusal, requestId: string): string;
}

/** What most dialects have in common. */
const usual = {
  modelKind: "chat",
  keyHeaders: [],
  clientHeaders: [],
  hasSockets: false,
  storesResponses: false,
  statusOf: ({ refusal }: Refusal): number => refusals[refusal].status,
} as const satisfies Partial<Dialect>;

/** `OwnAsk`: the Ask with what only this dialect remembers about the request (settings that it echoes, for example). */
type Definition<OwnAsk extends Ask> = Omit<Dialect, "read" | "unpack" | keyof typeof usual> &
  Partial<Pick<Dialect, keyof typeof usual>> &
  Readonly<{
    read(request: DialectRequest): OwnAsk | Refusal;
    encoder(ask: OwnAsk, reply: ReplyIdentity, form: ReplyForm, keep: Keep | null): Encoder;
    /** Absent where all of it can go to another thread unchanged. */
    pack?(ask: Omit<OwnAsk, "turns" | "model">): Packed;
    unpack?(packed: PackedAsk, ask: Ask): OwnAsk;
  }>;

/** A class, because one is created for each request. */
class AskWriter<OwnAsk extends Ask> implements Writer {
  readonly #dialect: Pick<Definition<OwnAsk>, "encoder" | "pack">;
  readonly #ask: OwnAsk;

  constructor(dialect: Pick<Definition<OwnAsk>, "encoder" | "pack">, ask: OwnAsk) {
    this.#dialect = dialect;
    this.#ask = ask;
  }

  encoder(reply: ReplyIdentity, form: ReplyForm, keep: Keep | null = null): Encoder {
    return this.#dialect.encoder(this.#ask, reply, form, keep);
  }

  pack(): Packed {
    const { turns: _, model: __, ...rest } = this.#ask;
    return this.#dialect.pack?.(rest) ?? { ask: rest, settings: rest, echo: "" };
  }
}

/** Turns a definition that knows the type of its own Asks into a dialect; no other part needs that type. */
export function defineDialect<OwnAsk extends Ask>(definition: Definition<OwnAsk>): Dialect {
  const { read, encoder: _, pack: __, unpack, ...facts } = definition;
  const readingOf = (ask: OwnAsk): Reading => ({ ask, writer: new AskWriter(definition, ask) });
  return {
    ...usual,
    ...facts,
    read(request) {
      const ask = read(request);
      if (isRefusal(ask)) return ask;
      const tags = tagsIn(request.body);
      const preset = withPreset(ask);
      const reading = readingOf(tags === undefined ? preset : { ...preset, tags });
      return request.namesUser === true
        ? { ...reading, endUser: endUserName(facts.endUser(request.body as object)) }
        : reading;
    },
    // The parts that were packed unchanged are in the Ask.
    unpack: (packed, ask) => readingOf(unpack?.(packed, ask) ?? (ask as OwnAsk)),
  };
}
