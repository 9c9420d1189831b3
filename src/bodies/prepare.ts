// Turns a large body into all that the main thread needs from it, without objects of its conversation. Runs in a Worker
// and depends only on its argument, so a Worker that dies loses only its current work.
import { modelsByName } from "../core/catalog.ts";
import { hasInputs } from "../core/inputs.ts";
import type { Dialect, DialectRequest, Packed, PackedAsk, Reading, RequestHead } from "../dialects/dialect.ts";
import type { Dialects } from "../dialects/registry.ts";
import { type EarlierTexts, earlierOf, bytesOf, type References } from "../dialects/stored-responses.ts";
import { smallBodyTokensMax } from "../core/limits.ts";
import { JsonScan } from "../core/outside-json.ts";
import { writtenInputs } from "../nodes/inputs/inputs-request.ts";
import { promptBlocks } from "../nodes/queue/prompt-blocks.ts";
import { writtenTurns } from "../nodes/request-messages.ts";
import { isRefusal, refuse } from "../core/refusals.ts";
import { encodeTexts } from "../tokens/encoded-texts.ts";
import { renderInputTexts, renderTurns } from "../tokens/render.ts";
import { readTokenize } from "../tokens/tokenize.ts";
import { unreadyParts, withParts } from "../tools/media/media-parts.ts";
import type { Ask, EncodedTexts, Model, Part, PreparedTurns, Refusal, Turn, UnreadyPart } from "../core/types.ts";
import { readBodyJson } from "./body-json.ts";

/** Tools, schemas and other settings of a large body, in UTF-16 units of JSON: more tokens than any context has. */
export const largeSettingsMaxLength = 2 * 1024 * 1024;
/** The text of these settings and of the instructions that each object of a response repeats. */
export const largeEchoMaxLength = 2 * largeSettingsMaxLength;
/** Parts of a request to fetch or read; no request could handle more in its time. */
const mediaPartsMax = 1_000;

/** How to read a body: as a request of a dialect, or as one of POST /v1/tokenize with that dialect's messages. */
type ReadAs = Omit<RequestHead, "headers"> &
  Readonly<{ dialect: string; headers: readonly [string, string][]; tokenizes: boolean; namesUser?: boolean }>;

/** What to return: a request; the texts of its conversation, to count them; its messages with media in their places. */
export type Wanted = "request" | "texts" | "messages";

export type PrepareOrder = Readonly<{
  reading: ReadAs;
  wanted: Wanted;
  body: Uint8Array;
  /** Its size as the client sent it. */
  bodyBytes: number;
  models: readonly Model[];
  /** Whether to find the stored responses that it refers to first. */
  finds: boolean;
  /** The stored responses that were found. */
  earlier: EarlierTexts | null;
  /** Its media by their keys; null while unknown. */
  found: ReadonlyMap<string, Part> | null;
}>;

/** The conversation for a node; see `PreparedTurns`. */
export type WrittenTurns = Pick<PreparedTurns, "systemEnd" | "endsOpen" | "blocks" | "images" | "imageBytes"> &
  Readonly<{ messages: Uint8Array; unready: readonly UnreadyPart[]; bodyBytes: number }>;

/** The texts of a conversation, and tokens beyond them. */
export type RenderedTurns = Readonly<{ texts: EncodedTexts; extraTokens: number }>;

export type Prepared =
  | Readonly<{ kind: "refused"; refusal: Refusal }>
  /** It refers to stored responses, which must be found first. */
  | Readonly<{ kind: "refers"; references: References }>
  | Readonly<{ kind: "text"; text: string; modelId: string | null; returnTokens: boolean }>
  | Readonly<
      { kind: "request"; modelId: string; namesModel: boolean; ask: PackedAsk; turns: WrittenTurns } & Pick<
        Reading,
        "endUser"
      >
    >
  | Readonly<{ kind: "texts"; rendering: RenderedTurns }>
  | Readonly<{ kind: "messages"; turns: WrittenTurns }>;

export function prepare(order: PrepareOrder, dialects: Dialects): Prepared {
  const json = readBodyJson(new TextDecoder().decode(order.body), Number.POSITIVE_INFINITY)!;
  if (isRefusal(json)) return { kind: "refused", refusal: json };
  const { value } = json;
  const dialect = dialects.named(order.reading.dialect);
  if (order.reading.tokenizes) return prepareTokenize(value, order, dialect);
  const references = order.finds ? (dialect.references?.(value) ?? null) : null;
  if (references !== null) return { kind: "refers", references };
  const earlier = order.earlier === null ? undefined : earlierOf(order.earlier);
  return preparedAsk(dialect.read({ ...requestOf(order, value), earlier }), order, true);
}

/** The size of a request including an earlier conversation. */
export const sizeOf = ({ bodyBytes, earlier }: Pick<PrepareOrder, "bodyBytes" | "earlier">): number =>
  bodyBytes + (earlier === null ? 0 : bytesOf(earlier));

function requestOf({ reading, bodyBytes, ...order }: PrepareOrder, body: unknown): DialectRequest {
  const { route, id, search, headers, namesUser = false } = reading;
  const head = { route, id, search, headers: new Headers([...headers]) };
  return { head, body, bodyBytes, catalog: catalogOf(order), namesUser };
}

/** A request needs only the catalog's models. */
const catalogOf = ({ models }: Pick<PrepareOrder, "models">) => ({ models: modelsByName(models) });

function prepareTokenize(value: unknown, order: PrepareOrder, dialect: Dialect): Prepared {
  const read = readTokenize(value, catalogOf(order), (body) => dialect.read(requestOf(order, body)));
  if (isRefusal(read)) return { kind: "refused", refusal: read };
  if (read.kind === "messages") return preparedAsk(read, order, read.model !== null);
  return { kind: "text", text: read.text, modelId: read.model?.id ?? null, returnTokens: read.returnTokens };
}

function preparedAsk(read: Reading | Refusal, { wanted, found }: PrepareOrder, namesModel: boolean): Prepared {
  if (isRefusal(read)) return { kind: "refused", refusal: read };
  const ask = found === null ? read.ask : withParts(read.ask, found);
  if (wanted === "texts") {
    const { texts, extraTokens } = hasInputs(ask) ? renderInputTexts(ask) : renderTurns(ask.turns);
    return { kind: "texts", rendering: { texts: encodeTexts(texts), extraTokens } };
  }
  const turns = written(ask);
  if (wanted === "messages") return { kind: "messages", turns };
  const packed = read.writer.pack();
  const refusal = tooMuchBeside(packed);
  if (refusal !== null) return { kind: "refused", refusal };
  const request = {
    kind: "request",
    modelId: ask.model.standsFor ?? ask.model.id,
    namesModel,
    ask: packed.ask,
    turns,
  } as const;
  return read.endUser == null ? request : { ...request, endUser: read.endUser };
}

/** The main thread takes everything but the conversation as objects, so it must be small; no model has room for that many tools. */
function tooMuchBeside({ settings, echo }: Packed): Refusal | null {
  const text = JSON.stringify(settings);
  if (text.length > largeSettingsMaxLength) return tooLarge("tools and other settings", largeSettingsMaxLength);
  const scan = new JsonScan();
  scan.push(text);
  if (scan.tokens > smallBodyTokensMax) {
    const reason = `The request's tools and other settings have too many values: more than ${smallBodyTokensMax} brackets, commas and colons`;
    return refuse("malformed", { reason });
  }
  const repeated = "instructions, tools, metadata and what else a response repeats";
  return echo.length > largeEchoMaxLength ? tooLarge(repeated, largeEchoMaxLength) : null;
}

function tooLarge(what: string, lengthMax: number): Refusal {
  const reason = `The request's ${what} are too large: they may have ${lengthMax / 1024 ** 2} MiB as JSON`;
  return refuse("malformed", { reason });
}

function written(ask: Ask): WrittenTurns {
  const { turns, tools, bodyBytes } = ask;
  const unready = [...unreadyParts(turns).values()].slice(0, mediaPartsMax);
  // The media decide how the messages around them are written.
  const messages = unready.length > 0 ? notYet() : writtenFor(ask);
  return { ...messages, blocks: promptBlocks(turns, tools), ...imagesOf(turns), unready, bodyBytes };
}

const writtenFor = (ask: Ask): ReturnType<typeof writtenTurns> =>
  hasInputs(ask) ? { ...notYet(), messages: writtenInputs(ask) } : writtenTurns(ask.turns);

/** New each time, because its bytes move to the main thread. */
const notYet = (): ReturnType<typeof writtenTurns> => ({ messages: new Uint8Array(), systemEnd: -1, endsOpen: false });

function imagesOf(turns: readonly Turn[]): Pick<WrittenTurns, "images" | "imageBytes"> {
  let images = 0;
  let imageBytes = 0;
  for (const turn of turns) {
    if ((turn.role !== "user" && turn.role !== "tool") || typeof turn.content === "string") continue;
    for (const part of turn.content) {
      if (part.kind !== "image" && part.kind !== "audio") continue;
      images += 1;
      imageBytes += part.url.length;
    }
  }
  return { images, imageBytes };
}
