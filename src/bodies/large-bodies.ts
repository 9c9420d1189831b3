// Requests with large bodies, which a Worker reads. On the main thread, parsing 32 MiB would stop every stream for a
// third of a second, or for two seconds if the body is made for it. The main thread gets the bytes of such a body, the
// messages for a node and the settings, but never the conversation as objects.
import { distinctModels, type KnownModels } from "../core/catalog.ts";
import type { Dialect, PackedAsk, Reading, RequestHead } from "../dialects/dialect.ts";
import type { EarlierTexts, References } from "../dialects/stored-responses.ts";
import {
  busyRetrySeconds,
  countingAccountPlacesMax,
  countingPlacesMax,
  largeBodiesAccountBytesMax,
} from "../core/limits.ts";
import { assert } from "../core/assert.ts";
import { isRefusal, refuse } from "../core/refusals.ts";
import { ByteBudget, type ByteBudgetLimits } from "../core/byte-budget.ts";
import type { TokenizeRequest } from "../tokens/tokenize.ts";
import type { AccountId, Ask, Model, Part, PreparedTurns, PromptBlocks, Refusal, UnreadyPart } from "../core/types.ts";
import { BodyReader, type BodyReaderOptions } from "./body-reader.ts";
import {
  type Prepared,
  type PrepareOrder,
  type RenderedTurns,
  sizeOf,
  type Wanted,
  type WrittenTurns,
} from "./prepare.ts";

/** Bytes that bodies may take while they wait, are read, or belong to open requests; a node's copy takes as much again. */
const largeBodiesBytesMax = 512 * 1024 * 1024;

assert(largeBodiesAccountBytesMax < largeBodiesBytesMax, "an account leaves room to others: large bodies");

export type LargeBody = Readonly<{
  /** JSON in UTF-8, in its own buffer, which is transferred. */
  body: Uint8Array;
  /** Its size as the client sent it. */
  bytes: number;
  /** Aborted when the client leaves. */
  cancelSignal: AbortSignal;
}>;

/** Finds stored responses that a body refers to. */
export type FindEarlier = (references: References) => Promise<EarlierTexts | Refusal>;

const roomDefault: ByteBudgetLimits = {
  places: countingPlacesMax,
  bytes: largeBodiesBytesMax,
  accountPlaces: countingAccountPlacesMax,
  accountBytes: largeBodiesAccountBytesMax,
};

export type LargeBodiesOptions = BodyReaderOptions & Readonly<{ room?: ByteBudgetLimits }>;

type OrderParts = Pick<PrepareOrder, "reading" | "body" | "bodyBytes" | "models">;

export class LargeBodies {
  readonly #line: BodyReader;
  readonly #room: ByteBudget;

  constructor(options: LargeBodiesOptions) {
    this.#line = new BodyReader(options);
    this.#room = new ByteBudget(options.room ?? roomDefault);
  }

  /** Bytes of the bodies that wait, are read or belong to open requests. */
  get heldBytes(): number {
    return this.#room.bytes;
  }

  get isLoaded(): boolean {
    return this.#line.isLoaded;
  }

  /**
   * Reads a body as a request of `dialect`. The caller must dispose of its `prepared` turns when the request has ended.
   * Refused as busy when open requests use all the room. `earlier`: what was already found for its references.
   */
  async readAsk(
    head: RequestHead,
    { body, bytes, cancelSignal }: LargeBody,
    account: AccountId,
    dialect: Dialect,
    { models }: KnownModels,
    find: FindEarlier | null,
    earlier: EarlierTexts | null = null,
    namesUser = false,
  ): Promise<Reading | Refusal> {
    const parts = {
      reading: { ...readingIn(dialect, head), namesUser },
      body,
      bodyBytes: bytes,
      models: distinctModels({ models }),
    };
    const read = await this.#read(parts, account, cancelSignal, find, earlier);
    if (isRefusal(read)) return read;
    const { prepared, turns } = read;
    if (prepared.kind === "request") return this.#readingOf(prepared, turns!, models, dialect);
    return prepared.kind === "refused" ? prepared.refusal : refuse("internal");
  }

  /** Reads a body of POST /v1/tokenize; the caller must dispose of the turns of its `ask`, too. `dialect` reads its messages. */
  async readTokenize(
    head: RequestHead,
    { body, bytes, cancelSignal }: LargeBody,
    account: AccountId,
    dialect: Dialect,
    { models }: KnownModels,
  ): Promise<TokenizeRequest | Refusal> {
    const reading = { ...readingIn(dialect, head), tokenizes: true };
    const parts = { reading, body, bodyBytes: bytes, models: distinctModels({ models }) };
    const read = await this.#read(parts, account, cancelSignal, null, null);
    if (isRefusal(read)) return read;
    const { prepared, turns } = read;
    switch (prepared.kind) {
      case "text": {
        const { text, modelId, returnTokens } = prepared;
        return { kind: "text", text, model: modelId === null ? null : models.get(modelId)!, returnTokens };
      }
      case "request": {
        const read = this.#readingOf(prepared, turns!, models, dialect);
        if (isRefusal(read)) return read;
        return { kind: "messages", ask: read.ask, model: prepared.namesModel ? read.ask.model : null };
      }
      default:
        return prepared.kind === "refused" ? prepared.refusal : refuse("internal");
    }
  }

  /** Ends the Worker; waiting bodies are refused. */
  close(): Promise<void> {
    return this.#line.close();
  }

  /** Finds what the body refers to, where `find` is given. A conversation holds the room that its body takes. */
  async #read(
    parts: OrderParts,
    account: AccountId,
    cancelSignal: AbortSignal,
    find: FindEarlier | null,
    earlier: EarlierTexts | null,
  ): Promise<Readonly<{ prepared: Prepared; turns: Conversation | null }> | Refusal> {
    const finds = find !== null && earlier === null;
    const order: PrepareOrder = { ...parts, wanted: "request", finds, earlier, found: null };
    const held = sizeOf(order);
    if (!this.#room.enter(account, held)) return refuse("busy", { seconds: busyRetrySeconds });
    const leave = (): void => this.#room.leave(account, held);
    const read = await this.#line.read(order, account, cancelSignal);
    if (isRefusal(read)) {
      leave();
      return read;
    }
    const { body, prepared } = read;
    if (prepared.kind === "request") {
      const source = new Source(this.#line, order, body, account);
      return { prepared, turns: new Conversation(source, prepared.turns, null, leave) };
    }
    leave();
    if (prepared.kind !== "refers" || find === null) return { prepared, turns: null };
    const found = await find(prepared.references);
    return isRefusal(found) ? found : this.#read({ ...parts, body }, account, cancelSignal, find, found);
  }

  #readingOf(
    { modelId, ask: packed, endUser }: Extract<Prepared, { kind: "request" }>,
    prepared: Conversation,
    models: ReadonlyMap<string, Model>,
    dialect: Dialect,
  ): Reading | Refusal {
    const model = models.get(modelId);
    if (model === undefined) {
      // The catalog was replaced while the body was read.
      prepared[Symbol.dispose]();
      return refuse("unknown_model", { model: modelId });
    }
    const ask: Ask = { ...(packed as PackedAsk), model, prepared, turns: [] };
    const reading = dialect.unpack(packed, ask);
    return endUser == null ? reading : { ...reading, endUser };
  }
}

const readingIn = ({ name }: Dialect, { route, id, search, headers }: RequestHead): PrepareOrder["reading"] => ({
  dialect: name,
  route,
  id,
  search,
  headers: [...headers],
  tokenizes: false,
});

/** A request's body, which a Worker may read again. Only one reading at a time has its bytes. */
class Source {
  readonly #line: BodyReader;
  readonly #order: PrepareOrder;
  readonly #account: AccountId;
  /** Null: lost with a Worker. */
  #body: Promise<Uint8Array | null>;

  constructor(line: BodyReader, order: PrepareOrder, body: Uint8Array, account: AccountId) {
    this.#line = line;
    this.#order = { ...order, finds: false };
    this.#account = account;
    this.#body = Promise.resolve(body);
  }

  async read(wanted: Wanted, found: ReadonlyMap<string, Part> | null): Promise<Prepared | Refusal> {
    const before = this.#body;
    const after = Promise.withResolvers<Uint8Array | null>();
    this.#body = after.promise;
    const body = await before;
    const order = { ...this.#order, wanted, found };
    // Reads it even for a client that left, because other readings wait for its bytes.
    const read =
      body === null ? refuse("internal") : await this.#line.read({ ...order, body }, this.#account, neverCancelled);
    after.resolve(isRefusal(read) ? null : read.body);
    return isRefusal(read) ? read : read.prepared;
  }
}

const neverCancelled = new AbortController().signal;

class Conversation implements PreparedTurns {
  readonly messages: Buffer;
  readonly systemEnd: number;
  readonly endsOpen: boolean;
  readonly blocks: PromptBlocks;
  readonly images: number;
  readonly imageBytes: number;
  readonly unready: readonly UnreadyPart[];
  readonly #source: Source;
  readonly #found: ReadonlyMap<string, Part> | null;
  readonly #leave: () => void;
  #left = false;

  constructor(source: Source, turns: WrittenTurns, found: ReadonlyMap<string, Part> | null, leave: () => void) {
    const { messages, systemEnd, endsOpen, blocks, images, imageBytes, unready } = turns;
    this.messages = Buffer.from(messages.buffer, messages.byteOffset, messages.byteLength);
    this.systemEnd = systemEnd;
    this.endsOpen = endsOpen;
    this.blocks = blocks;
    this.images = images;
    this.imageBytes = imageBytes;
    this.unready = unready;
    this.#source = source;
    this.#found = found;
    this.#leave = leave;
  }

  async withMedia(found: ReadonlyMap<string, Part>): Promise<Readonly<{ turns: PreparedTurns; bodyBytes: number }>> {
    const read = await this.#source.read("messages", found);
    if (isRefusal(read) || read.kind !== "messages") throw new Error("a large body could not be read again");
    const { turns } = read;
    return { turns: new Conversation(this.#source, turns, found, () => this.#giveBack()), bodyBytes: turns.bodyBytes };
  }

  async render(): Promise<RenderedTurns | Refusal> {
    const read = await this.#source.read("texts", this.#found);
    if (isRefusal(read)) return read;
    return read.kind === "texts" ? read.rendering : refuse("internal");
  }

  [Symbol.dispose](): void {
    this.#giveBack();
  }

  /** Runs once, whether called on the conversation or on its copy with media. */
  #giveBack(): void {
    if (this.#left) return;
    this.#left = true;
    this.#leave();
  }
}
