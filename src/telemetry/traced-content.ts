// What a request said and was told, for its trace: the newest turns and the beginning of the answer, bounded, in the form of
// OpenTelemetry's conventions for generative AI.
import { patternOf } from "../config/telemetry.ts";
import type { AccountId, Ask, Part, Sink, Turn } from "../core/types.ts";
import type { Content } from "./request-record.ts";

/** UTF-16 units of the prompt, and of the answer. */
const contentMaxLength = 65_536;

type Said =
  { type: "text" | "reasoning"; content: string } | { type: "tool_call"; id: string; name: string; arguments: string };

export class TracedContent implements Content {
  readonly #patterns: readonly RegExp[];
  readonly #accounts: readonly AccountId[] | null;
  readonly #said: Said[] = [];
  #length = 0;

  /** `accounts` null: of all. */
  constructor(redact: readonly string[], accounts: readonly AccountId[] | null) {
    this.#accounts = accounts;
    this.#patterns = redact.flatMap((pattern) => patternOf(pattern) ?? []);
  }

  isOf(account: AccountId | null): boolean {
    return this.#accounts === null || (account !== null && this.#accounts.includes(account));
  }

  /** It takes no bytes, so that each piece comes as one. */
  readonly listen = (sink: Sink): Sink => ({
    piece: (piece) => {
      if (piece.kind === "text" || piece.kind === "refusal") this.#add("text", piece.literal);
      else if (piece.kind === "reasoning") this.#add("reasoning", piece.literal);
      else if (piece.kind === "call" && this.#length < contentMaxLength) {
        this.#length += piece.name.length + 64;
        this.#said.push({ type: "tool_call", id: piece.id, name: piece.name, arguments: "" });
      } else if (piece.kind === "call-arguments") {
        const call = this.#said.filter(({ type }) => type === "tool_call")[piece.index];
        if (call?.type === "tool_call") call.arguments += this.#room(piece.literal);
      }
      sink.piece(piece);
    },
    flush: () => sink.flush(),
  });

  attributes({ turns, prepared }: Ask, finish_reason: string): Readonly<Record<string, string>> {
    const messages: object[] = [];
    let room = contentMaxLength;
    for (let at = turns.length - 1; at >= 0 && room > 0; at -= 1) {
      const parts = partsOf(turns[at]!).map((part) => this.#safe(part, room));
      room -= JSON.stringify(parts).length;
      messages.unshift({ role: turns[at]!.role === "prompt" ? "user" : turns[at]!.role, parts });
    }
    const output = [{ role: "assistant", parts: this.#said.map((part) => this.#safe(part)), finish_reason }];
    return {
      ...(prepared === undefined ? { "gen_ai.input.messages": JSON.stringify(messages) } : {}),
      "gen_ai.output.messages": JSON.stringify(output),
    };
  }

  #add(type: "text" | "reasoning", literal: string): void {
    const content = this.#room(literal);
    if (content === "") return;
    const last = this.#said.at(-1);
    if (last?.type === type) last.content += content;
    else this.#said.push({ type, content });
  }

  #room(literal: string): string {
    if (this.#length >= contentMaxLength) return "";
    const text = (JSON.parse(literal) as string).slice(0, contentMaxLength - this.#length);
    this.#length += text.length;
    return text;
  }

  /** Its texts cut and without what the operator wants to keep. */
  #safe<Of extends object>(part: Of, room = contentMaxLength): Of {
    const safe = (text: string): string =>
      redacted(text.slice(0, room + patternReach), this.#patterns)
        .slice(0, room)
        .toWellFormed();
    const members = Object.entries(part).map(([name, value]) => [
      name,
      typeof value === "string" && name !== "type" ? safe(value) : value,
    ]);
    return Object.fromEntries(members) as Of;
  }
}

/**
 * A pattern sees so much at once, half of it twice, and so finds what is up to half as long: one that tries each beginning,
 * as for an e-mail address, takes seconds for a whole prompt that somebody made for that.
 */
const patternReach = 4_096;

function redacted(text: string, patterns: readonly RegExp[]): string {
  const found = patterns.flatMap((pattern) => {
    const places: (readonly [from: number, to: number])[] = [];
    for (let at = 0; at === 0 || at + patternReach / 2 < text.length; at += patternReach / 2) {
      for (const { 0: match, index } of text.slice(at, at + patternReach).matchAll(pattern))
        if (match !== "") places.push([at + index, at + index + match.length]);
    }
    return places;
  });
  let [safe, end] = ["", 0];
  for (const [from, to] of found.toSorted(([one], [other]) => one - other)) {
    if (from >= end) safe += `${text.slice(end, from)}[redacted]`;
    end = Math.max(end, to);
  }
  return safe + text.slice(end);
}

function partsOf(turn: Turn): object[] {
  const text = (content: string) => ({ type: "text", content });
  const read = (part: Part) => text(part.kind === "text" ? part.text : `[${part.kind}]`);
  const { content } = turn;
  const texts = content === null ? [] : typeof content === "string" ? [text(content)] : content.map(read);
  if (turn.role === "tool") {
    return [
      { type: "tool_call_response", id: turn.callId, response: texts.map(({ content: said }) => said).join("\n") },
    ];
  }
  if (turn.role !== "assistant") return texts;
  return [
    ...texts,
    ...turn.calls.map(({ id, name, arguments: given }) => ({ type: "tool_call", id, name, arguments: given })),
  ];
}
