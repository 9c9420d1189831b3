// Passes one round of the tool loop on: text, reasoning and the client's calls flow; calls of ours wait for its end.
import { isRecord } from "../core/is-record.ts";
import type { Call, Piece, Sink } from "../core/types.ts";
import { CitationReader, type Sources } from "./search/citations.ts";
import type { OwnedTool } from "./owned-tool.ts";
import { parseOutsideJson } from "../core/outside-json.ts";

/** A call of one of our tools. Where `valid` is false, the model's arguments are not a JSON object and are left out. */
export type CalledTool = Readonly<{ call: Call; offeredName: string; tool: OwnedTool; valid: boolean }>;

export type RoundSinkParts = Readonly<{
  sink: Sink;
  /** Our tools by the names that the model knows. */
  owned: ReadonlyMap<string, OwnedTool>;
  /** Null where there is nothing to cite: then texts are not scanned. */
  sources: Sources | null;
  /** From earlier rounds: the client's calls, and UTF-16 units of text. */
  clientCallsBefore: number;
  textLengthBefore: number;
  /** Whether the text is dropped if the round calls tools: then it waits for `release`. */
  holdsText: boolean;
}>;

type Begun = { id: string; name: string; tool: OwnedTool; arguments: string[] };

export class RoundSink implements Sink {
  readonly #sink: Sink;
  readonly #owned: RoundSinkParts["owned"];
  readonly #clientCallsBefore: number;
  readonly #textLengthBefore: number;
  readonly #citations: CitationReader | null;
  readonly #text: string[] = [];
  readonly #reasoning: string[] = [];
  readonly #begun: Begun[] = [];
  /** By the round's own index of a call: ours, or its number among all calls of the client's tools. */
  readonly #calls: (Begun | number)[] = [];
  #clientCalls = 0;
  /** Text that waits; null where none is held. */
  readonly #held: Piece[] | null;

  constructor({ sink, owned, sources, clientCallsBefore, textLengthBefore, holdsText }: RoundSinkParts) {
    this.#sink = sink;
    this.#held = holdsText ? [] : null;
    this.#owned = owned;
    this.#clientCallsBefore = clientCallsBefore;
    this.#textLengthBefore = textLengthBefore;
    this.#citations =
      sources === null ? null : new CitationReader(sources, textLengthBefore, (piece) => sink.piece(piece));
  }

  piece(piece: Piece): void {
    if (piece.kind !== "text") this.#citations?.flush();
    switch (piece.kind) {
      case "text":
        this.#text.push(piece.literal);
        if (this.#held !== null) this.#held.push(piece);
        else if (this.#citations === null) this.#sink.piece(piece);
        else this.#citations.text(piece);
        return;
      case "reasoning":
        this.#reasoning.push(piece.literal);
        return this.#sink.piece(piece);
      case "call":
        return this.#call(piece);
      case "call-arguments":
        return this.#arguments(piece);
      default:
        return this.#sink.piece(piece);
    }
  }

  flush(): Promise<void> | null {
    return this.#sink.flush();
  }

  ended(): void {
    this.#citations?.flush();
  }

  /** This was the last round, so the held text is the answer. */
  release(): void {
    for (const piece of this.#held ?? []) this.#sink.piece(piece);
  }

  get clientCalls(): number {
    return this.#clientCalls;
  }

  /** As the model wrote it. */
  get text(): string {
    return decoded(this.#text);
  }

  /** UTF-16 units of the answer's text as the client sees it, including this round. */
  get textLengthAfter(): number {
    return this.#citations?.length ?? this.#textLengthBefore + this.text.length;
  }

  get reasoning(): string {
    return decoded(this.#reasoning);
  }

  /** The calls of our tools; complete once the round has ended. */
  get ownedCalls(): readonly CalledTool[] {
    return this.#begun.map(({ id, name: offeredName, tool, arguments: literals }) => {
      const json = decoded(literals).trim() || "{}";
      const valid = isObject(json);
      const call: Call = {
        id,
        name: tool.serverTool?.name ?? tool.tool.name,
        arguments: valid ? json : JSON.stringify({ arguments: json }),
      };
      return { call, offeredName, tool, valid };
    });
  }

  #call(piece: Extract<Piece, { kind: "call" }>): void {
    const tool = this.#owned.get(piece.name);
    if (tool === undefined) {
      const index = this.#clientCallsBefore + this.#clientCalls++;
      this.#calls[piece.index] = index;
      this.#sink.piece({ ...piece, index });
      return;
    }
    const begun: Begun = { id: piece.id, name: piece.name, tool, arguments: [] };
    this.#calls[piece.index] = begun;
    this.#begun.push(begun);
  }

  #arguments(piece: Extract<Piece, { kind: "call-arguments" }>): void {
    const call = this.#calls[piece.index]!;
    if (typeof call === "number") this.#sink.piece({ ...piece, index: call });
    else call.arguments.push(piece.literal);
  }
}

const decoded = (literals: readonly string[]): string =>
  literals.map((literal) => JSON.parse(literal) as string).join("");

function isObject(json: string): boolean {
  try {
    return isRecord(parseOutsideJson(json));
  } catch {
    return false; // a model may write anything as arguments: invalid JSON is the result, not an error
  }
}
