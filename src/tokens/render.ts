// Renders a request as its model sees it, slightly high rather than low: each text once, with what common templates
// (ChatML, Llama 3, Qwen's tool instructions) write around it.
import { inlineImageHeader, type ImageSize } from "../core/image-header.ts";
import { hasInputs, type InputsAsk, tokensOf } from "../core/inputs.ts";
import { audioTokens } from "../core/voices.ts";
import { tokensAroundInput } from "../core/limits.ts";
import { sentTools } from "../core/sent-tools.ts";
import type { Ask, Part, Tool, Turn } from "../core/types.ts";

export type Rendering = Readonly<{
  /** The texts of the request, each once and unchanged: nothing is joined. */
  texts: readonly string[];
  /** Tokens beyond those of the texts. */
  extraTokens: number;
}>;

/** The start token, and the line that opens the answer: 4 with ChatML, 5 with Llama 3, and room for a date line. */
const promptTokens = 8;
/** `<|im_start|>user\n` ... `<|im_end|>\n`: 5 with ChatML and with Llama 3. */
const turnTokens = 5;
/** The instructions around a list of tools: 96 with Qwen's template. */
const toolsTokens = 110;
/** `<tool_call>\n{"name": "", "arguments": }\n</tool_call>\n` */
const callTokens = 16;
/** `<tool_response>\n` ... `\n</tool_response>` */
const resultTokens = 8;
/** `<think>\n` ... `\n</think>\n\n` */
const reasoningTokens = 6;
/** The built-in search tool and the rule to cite. */
const searchTokens = 160;

export function renderAsk(ask: Ask): Rendering {
  if (hasInputs(ask)) return renderInputs(ask);
  const { texts, extraTokens: turnsTokens } = renderTurns(ask.turns);
  let extraTokens = (ask.plain === undefined ? promptTokens : 0) + turnsTokens;
  if (ask.plain !== undefined && ask.plain.suffix !== null) texts.push(ask.plain.suffix);
  const tools = sentTools(ask);
  if (tools.length > 0) {
    extraTokens += toolsTokens;
    for (const tool of tools) texts.push(toolText(tool));
  }
  if (ask.format?.kind === "json_schema") texts.push(ask.format.name, spacedJson(ask.format.schema));
  if (ask.webSearch) extraTokens += searchTokens;
  return { texts, extraTokens };
}

/** Inputs count as they are, without a template. A query is read with each document and adds its length each time. */
function renderInputs(ask: InputsAsk): Rendering {
  const { inputs } = ask;
  const tokens = tokensOf(ask);
  if (tokens !== null) return { texts: [], extraTokens: tokens };
  const { texts } = renderInputTexts(ask);
  const around = inputs.count * tokensAroundInput;
  if (inputs.kind === "vectors") return { texts, extraTokens: around };
  const again = Math.ceil(Buffer.byteLength(inputs.query) / inputBytesPerToken) * (inputs.count - 1);
  return { texts: [...texts, inputs.query], extraTokens: around + again };
}

/** The texts of the inputs; for a large body, computed in the Worker that has it. */
export const renderInputTexts = (ask: InputsAsk): Readonly<{ texts: string[]; extraTokens: number }> =>
  tokensOf(ask) === null ? { texts: renderTurns(ask.turns).texts, extraTokens: 0 } : { texts: [], extraTokens: 0 };

const inputBytesPerToken = 4;

export function renderTurns(turns: readonly Turn[]): Readonly<{ texts: string[]; extraTokens: number }> {
  const texts: string[] = [];
  let extraTokens = 0;
  for (const turn of turns) extraTokens += renderTurn(turn, texts);
  return { texts, extraTokens };
}

function renderTurn(turn: Turn, texts: string[]): number {
  switch (turn.role) {
    case "system":
      texts.push(turn.content);
      return turnTokens;
    case "prompt":
      texts.push(turn.content);
      return turn.tokens?.length ?? 0;
    case "user":
      return turnTokens + renderContent(turn.content, texts);
    case "tool":
      return turnTokens + resultTokens + renderContent(turn.content, texts);
    case "assistant": {
      const { content, reasoning, calls } = turn;
      if (content !== null) texts.push(content);
      if (reasoning !== null) texts.push(reasoning);
      for (const call of calls) texts.push(call.name, call.arguments);
      return turnTokens + (reasoning === null ? 0 : reasoningTokens) + calls.length * callTokens;
    }
    default:
      return turn satisfies never;
  }
}

function renderContent(content: string | readonly Part[], texts: string[]): number {
  if (typeof content === "string") {
    texts.push(content);
    return 0;
  }
  let extraTokens = 0;
  for (const part of content) {
    if (part.kind === "text") texts.push(part.text);
    else if (part.kind === "file") extraTokens += fileTokens(part.url);
    else if (part.kind === "audio") extraTokens += audioTokens(part.url);
    else extraTokens += imageTokens(part.detail === "low" ? null : inlineImageHeader(part.url), part.detail);
  }
  return extraTokens;
}

// ---------------------------------------------------------------- images

const imageBaseTokens = 85;
const imageTileTokens = 170;
const imageTilePixels = 512;
/** An image is first scaled down to fit a square of this side, */
const imageLongSidePixels = 2_048;
/** then until its shorter side is at most this long. */
const imageShortSidePixels = 768;
const imageTilesMax =
  Math.ceil(imageLongSidePixels / imageTilePixels) * Math.ceil(imageShortSidePixels / imageTilePixels);

/** 85, plus 170 per 512-pixel tile of the scaled image; low detail only 85; unknown size the maximum, 1,445. */
export function imageTokens(size: ImageSize | null, detail: string | null): number {
  if (detail === "low") return imageBaseTokens;
  if (size === null) return imageBaseTokens + imageTileTokens * imageTilesMax;
  const long = Math.max(size.width, size.height);
  const short = Math.min(size.width, size.height);
  const scale = Math.min(1, imageLongSidePixels / long, imageShortSidePixels / short);
  const tiles = Math.ceil((long * scale) / imageTilePixels) * Math.ceil((short * scale) / imageTilePixels);
  return imageBaseTokens + imageTileTokens * tiles;
}

// ---------------------------------------------------------------- files

/** A text PDF has about 5 KB and 500 tokens a page; scans and pictures have bytes without tokens. */
const fileBytesPerToken = 10;
const fileTokensMax = 100_000;

/** A guess, because counting neither fetches nor opens files; nothing for a file that is not here. */
const fileTokens = (url: string): number =>
  /^data:/i.test(url) ? Math.min(fileTokensMax, Math.ceil((url.length * 3) / 4 / fileBytesPerToken)) : 0;

// ---------------------------------------------------------------- tools

function toolText({ name, description, parameters }: Tool): string {
  return `${spacedJson({ type: "function", function: { name, ...(description === null ? {} : { description }), parameters } })}\n`;
}

/** JSON in the form of Python's `json.dumps`, which the templates use: 15 % more tokens than without the spaces. */
function spacedJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(spacedJson).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).map(([key, member]) => `${JSON.stringify(key)}: ${spacedJson(member)}`);
  return `{${members.join(", ")}}`;
}
