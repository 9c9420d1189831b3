// What a dialect is, as one value: what the rest of the gateway must know of it, how it reads a request into an Ask, and how
// it writes an answer's pieces as its own events or JSON. A dialect knows no balance, node, database or server.
import type { Priority } from "../core/priority.ts";
import type { Clock } from "../core/clock.ts";
import type { ByteWriter } from "../core/byte-writer.ts";
import type { KnownModels } from "../core/catalog.ts";
import { endUserName } from "../core/end-user.ts";
import { isRefusal } from "../core/refusals.ts";
import type {
  Ask,
  CoderBilling,
  Endpoint,
  FinishReason,
  Model,
  ModelKind,
  Piece,
  Refusal,
  Usage,
} from "../core/types.ts";
import type { Earlier, References, StoredResponse } from "./stored-responses.ts";

/** What a reply says about itself in every event: minted by the gateway, never taken from a node. */
export type ReplyIdentity = Readonly<{
  requestId: string;
  createdSeconds: number;
  /** How urgent it is; absent: it did not ask. */
  priority?: Priority | undefined;
}>;

/** What a dialect may need of the server that speaks it. */
export type DialectContext = Readonly<{
  /** `sealingKeyBytes` random bytes, the same in every process and after every restart. */
  sealingKey: Uint8Array;
  clock: Clock;
  /** True if something keeps responses (see `StoredResponses`). */
  storesResponses: boolean;
}>;

/** The end of an answer as a client sees it. */
export type AnswerEnd = Readonly<{ reason: FinishReason; stopSequence: string | null; usage: Usage }>;

/** A reply as the events of a stream, or as one JSON document: the stream, collected. */
export type ReplyForm = "events" | "whole";

/**
 * Writes one reply. Each result is zero or more whole server-sent events; of the form "whole" there are none, and what `end`
 * returns is the reply.
 */
export interface Encoder {
  /** A sign of life while nothing else can be sent; valid before and between all events. */
  keepAlive(): string;
  piece(piece: Piece): string;
  /**
   * Writes the event of a text or reasoning literal that lies in `bytes` from `start` to `end` (see `Sink.literal`), if
   * that event is all there is to write; else false, nothing was written, and the literal is to come as a piece.
   */
  literal?(kind: "text" | "reasoning", bytes: Uint8Array, start: number, end: number, out: ByteWriter): boolean;
  /** What the request's input counts, for an encoder that shows it at the start; called at most once, maybe too late. */
  inputCounted?(tokens: number): void;
  /** The last events; called once, after the charge is on disk. */
  end(end: AnswerEnd): string;
  /** The same in parts, for a reply that may be too large to be one text; what was given out is no longer kept. */
  parts?(end: AnswerEnd): Iterator<string>;
  /** The dialect's error event; called instead of `end`, never followed by a terminator. */
  failure(refusal: Refusal): string;
}

/** Where requests of a dialect come: POST to `path`, and to the same with the base addresses that clients make of it. */
type DialectRoute = Readonly<{
  /**
   * At the dialect's endpoint or below it. It may have one `*`, for what the dialect reads of the address itself: of
   * "/v1beta/models/*:generateContent", say, the model's name.
   */
  path: Endpoint;
  /** The reply where the route counts a request's input tokens, which is free, instead of answering it. */
  counted?: (tokens: number) => object;
}>;

/** What others know of a dialect. They receive it as data, because most of them must not know dialects. */
type DialectFacts = Readonly<{
  /** Its own among all dialects; by it a Worker is told which one is meant. */
  name: string;
  /** By this it is named in usage, metrics and logs, and an error at or below it has the dialect's form. */
  endpoint: Endpoint;
  routes: readonly DialectRoute[];
  /** What the models are for that its requests name, and by which they are counted for flood protection. */
  modelKind: ModelKind;
  /** Whether a request to a model of the coder tier is one of the account's calls, or costs its tokens. */
  coderBilling: CoderBilling;
  /** Fields of its bodies that tell it from other dialects where the address does not. */
  bodyFields: readonly string[];
  /** Headers in which its clients send the key beside `Authorization: Bearer`; in lower case. They hold on every route. */
  keyHeaders: readonly string[];
  /** Headers that its clients alone send: by one of these they are known where the address says no dialect. */
  clientHeaders: readonly string[];
  /** What stands before the stem of the request's id in the id of a reply. */
  replyIdPrefix: string;
  /** True if its responses can be kept and asked for again, by their ids below its endpoint. */
  storesResponses: boolean;
  /** A model's capabilities in GET /v1/models as its clients call them; absent: as everybody else's. */
  capabilities?: (model: Model) => object;
}>;

/** Where a request came and what it came with, beside its body. */
export type RequestHead = Readonly<{
  /** The path of the dialect's route. */
  route: Endpoint;
  /** What stood in the place of its `*`, decoded; "" where it has none. */
  id: string;
  /** The query with its question mark, or "". */
  search: string;
  headers: Headers;
}>;

export type DialectRequest = Readonly<{
  head: RequestHead;
  /** Parsed, and not checked yet. */
  body: unknown;
  /** Its size as sent. */
  bodyBytes: number;
  catalog: KnownModels;
  /** What was found for its references. */
  earlier?: Earlier | undefined;
  /** Whether the reading is to say for whom it is. */
  namesUser?: boolean;
}>;

/** A checked request, and what writes its reply. */
export type Reading = Readonly<{
  ask: Ask;
  writer: Writer;
  /** For whom it is, as endUserName of core/end-user.ts has it. Absent where nobody asked for that. */
  endUser?: string | null;
}>;

/** Takes the finished response of a request in the moment in which its end is written. */
export type Keep = (response: StoredResponse) => void;

/** Writes the reply of one request. */
export interface Writer {
  encoder(reply: ReplyIdentity, form: ReplyForm, keep?: Keep | null): Encoder;
  /** What goes to another thread, to be unpacked there by the same dialect. */
  pack(): Packed;
}

/** An Ask, and what its dialect remembers of the request, without its turns and without objects of classes. */
export type PackedAsk = Omit<Ask, "turns" | "model" | "prepared">;
export type Packed = Readonly<{
  ask: PackedAsk;
  /** What the other thread takes of it as objects, each once. */
  settings: object;
  /** What each event about the whole reply repeats, as JSON text. */
  echo: string;
}>;

export interface Dialect extends DialectFacts {
  /** What a body, not checked yet, refers to; absent in dialects whose requests carry everything themselves. */
  references?(body: unknown): References | null;
  /** For whom a checked body says that it is, whatever that value is. */
  endUser(body: object): unknown;
  /** The refusal names the field that is wrong. */
  read(request: DialectRequest): Reading | Refusal;
  /** A request that another thread read; `ask` is its Ask as it is here. */
  unpack(packed: PackedAsk, ask: Ask): Reading;
  /** The HTTP status of a refusal in this dialect; `ask` is null when the body was not read. */
  statusOf(refusal: Refusal, ask: Ask | null): number;
  /** The error body as JSON text. */
  errorBody(refusal: Refusal, requestId: string): string;
}

/** `OwnAsk` is the Ask with what this dialect alone must remember of the request (settings that it echoes, say). */
type Definition<OwnAsk extends Ask> = Omit<Dialect, "read" | "unpack"> &
  Readonly<{
    read(request: DialectRequest): OwnAsk | Refusal;
    encoder(ask: OwnAsk, reply: ReplyIdentity, form: ReplyForm, keep: Keep | null): Encoder;
    /** Absent where all of it can go to another thread as it is. */
    pack?(ask: Omit<OwnAsk, "turns" | "model">): Packed;
    unpack?(packed: PackedAsk, ask: Ask): OwnAsk;
  }>;

/** A class, because one is made for each request. */
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

/** Makes a dialect of one that knows the type of its own Asks, which nobody else needs to. */
export function defineDialect<OwnAsk extends Ask>(definition: Definition<OwnAsk>): Dialect {
  const { read, encoder: _, pack: __, unpack, ...facts } = definition;
  const readingOf = (ask: OwnAsk): Reading => ({ ask, writer: new AskWriter(definition, ask) });
  return {
    ...facts,
    read(request) {
      const ask = read(request);
      if (isRefusal(ask)) return ask;
      const reading = readingOf(ask);
      return request.namesUser === true
        ? { ...reading, endUser: endUserName(facts.endUser(request.body as object)) }
        : reading;
    },
    // What it packed as it was is in the Ask.
    unpack: (packed, ask) => readingOf(unpack?.(packed, ask) ?? (ask as OwnAsk)),
  };
}
