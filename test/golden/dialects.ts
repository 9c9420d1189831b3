// The three dialects as the golden files use them: everything that differs between two runs is fixed, except the sealed
// reasoning, whose nonce is random and which is shown opened.
import { embeddedCatalog } from "../../src/core/catalog.ts";
import { chatCompletions } from "../../src/dialects/chat/chat-completions.ts";
import { completions } from "../../src/dialects/completions/completions.ts";
import type { Dialect, ReplyIdentity } from "../../src/dialects/dialect.ts";
import { messages } from "../../src/dialects/messages/messages.ts";
import { responsesDialect } from "../../src/dialects/responses/responses.ts";
import { sealingKeyBytes } from "../../src/core/limits.ts";
import { Sealer } from "../../src/dialects/request/sealed-content.ts";
import { isRefusal, messageOf } from "../../src/core/refusals.ts";
import type { Ask } from "../../src/core/types.ts";
import { readBody } from "../fixtures/reading.ts";

export type DialectName = "chat" | "messages" | "responses";
/** Plain completions have the form of a text alone, and none of conversations. */
export type AnyDialectName = DialectName | "completions";

/** Fields of a request, by dialect. */
export type Bodies = Readonly<Partial<Record<AnyDialectName, object>>>;

export const identity: ReplyIdentity = { requestId: "req_1", createdSeconds: 1_795_200_000 };

const catalog = embeddedCatalog();
const sealingKey = new Uint8Array(sealingKeyBytes).fill(1);
const sealer = new Sealer(sealingKey);

export const dialects: Readonly<Record<AnyDialectName, Dialect>> = {
  chat: chatCompletions,
  messages: messages as Dialect,
  responses: responsesDialect({
    sealingKey,
    clock: { wall: () => 1_795_200_002_000, monotonic: () => 0 },
    storesResponses: false,
  }) as Dialect,
  completions,
};
export const dialectNames: readonly DialectName[] = ["chat", "messages", "responses"];

const usual: Readonly<Record<AnyDialectName, object>> = {
  chat: { messages: [{ role: "user", content: "hello" }] },
  messages: { messages: [{ role: "user", content: "hello" }], thinking: { type: "adaptive" } },
  responses: { input: "hello", store: false, include: ["reasoning.encrypted_content"] },
  completions: { prompt: "hello" },
};

/** A plain request of a dialect with more fields. */
export function askIn(name: AnyDialectName, model: string, more: object = {}): Ask {
  const ask = readBody(dialects[name], { model, ...usual[name], ...more }, 400, catalog);
  if (isRefusal(ask)) throw new Error(messageOf(ask));
  return ask;
}

/** What stands in `encrypted_content` of reasoning, opened, so that the same reply has the same bytes. */
export const opened = (written: string): string =>
  written.replace(/"encrypted_content":"([^"]+)"/g, (whole, sealed: string) => {
    const reasoning = sealer.open("reasoning", sealed);
    return reasoning === null ? whole : `"encrypted_content":${JSON.stringify(`sealed: ${reasoning}`)}`;
  });
