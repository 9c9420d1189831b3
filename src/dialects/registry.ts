// Every dialect that is served: a new one is a folder beside this file and a line in it.
import { assert } from "../core/assert.ts";
import { speech } from "./audio/speech.ts";
import { transcriptions, translations } from "./audio/transcriptions.ts";
import { chatCompletions } from "./chat/chat-completions.ts";
import { completions } from "./completions/completions.ts";
import type { ModelKind } from "../core/types.ts";
import type { Dialect, DialectContext } from "./dialect.ts";
import { embeddings } from "./embeddings/embeddings.ts";
import { messages } from "./messages/messages.ts";
import { rerank } from "./rerank/rerank.ts";
import { responsesDialect } from "./responses/responses.ts";

export type OpenDialect = (context: DialectContext) => Dialect;

export const everyDialect: readonly OpenDialect[] = [
  () => chatCompletions,
  () => messages,
  responsesDialect,
  () => completions,
  () => embeddings,
  () => rerank,
  () => transcriptions,
  () => translations,
  () => speech,
];

export class Dialects {
  readonly all: readonly Dialect[];
  /** For clients that cannot be identified; it also reads the messages of POST /v1/tokenize. */
  readonly usual: Dialect;
  /** Headers that may carry a key beside `Authorization`. */
  readonly keyHeaders: readonly string[];

  constructor(context: DialectContext, registry = everyDialect) {
    this.all = registry.map((open) => open(context));
    this.usual = this.all[0]!;
    this.keyHeaders = [...new Set(this.all.flatMap(({ keyHeaders }) => keyHeaders))];
  }

  named(name: string): Dialect {
    const dialect = this.all.find((one) => one.name === name);
    assert(dialect !== undefined, "every thread knows the same dialects");
    return dialect;
  }

  /** The dialect whose clients alone send one of these headers; null: none. */
  speaking(headers: Headers): Dialect | null {
    return this.all.find(({ clientHeaders }) => clientHeaders.some((name) => headers.has(name))) ?? null;
  }

  /** The dialect of a body by its fields; of several, preferably the client's own. Null: unknown. */
  ofBody(body: Readonly<Record<string, unknown>>, kind: ModelKind | null, headers: Headers): Dialect | null {
    const client = this.speaking(headers);
    const fits = ({ bodyFields }: Dialect): number => bodyFields.filter((field) => body[field] !== undefined).length;
    const among = this.all
      .map((dialect) => ({ dialect, fit: kind === null || dialect.modelKind === kind ? fits(dialect) : 0 }))
      .filter(({ fit }) => fit > 0);
    const own = among.find(({ dialect }) => dialect === client);
    return own?.dialect ?? among.toSorted((one, other) => other.fit - one.fit)[0]?.dialect ?? null;
  }

  /** The dialect of a client at an address that names none: a key in a header of its own identifies it, too. */
  ofClient(headers: Headers): Dialect {
    const known = this.speaking(headers);
    if (known !== null || headers.has("authorization")) return known ?? this.usual;
    return this.all.find(({ keyHeaders }) => keyHeaders.some((name) => headers.has(name))) ?? this.usual;
  }
}
