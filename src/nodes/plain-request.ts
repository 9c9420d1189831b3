// Ask -> a plain completion's JSON body for one engine: the prompt unchanged. Only fields named here are sent.
import { refuse } from "../core/refusals.ts";
import type { AccountId, Ask, PlainCompletion, Refusal } from "../core/types.ts";
import type { EngineKind } from "./engine-kind.ts";
import { addEngineFields, type KnowingNode } from "./engine-fields.ts";
import { noSuffix } from "./failure/client-faults.ts";
import { type EngineShare, shareFields, usualShare } from "./prefix-cache.ts";
import { engineTraits, streamFields } from "./engine-traits.ts";
import { addSampling, type LargeNodeRequest, type NodeRequest, stopsFor } from "./request.ts";
import { promptJson } from "./request-messages.ts";

export type PlainAsk = Ask & Readonly<{ plain: PlainCompletion }>;
export const isPlain = (ask: Ask): ask is PlainAsk => ask.plain !== undefined;

/** The refusal that names a field which the engine would silently ignore; null where it knows all of them. */
export function notTaken({ model, plain }: PlainAsk, engine: EngineKind): Refusal | null {
  const knows = engineTraits[engine].plain;
  if (plain.suffix !== null && !knows.suffix) return refuse("malformed", { reason: noSuffix(model.id) });
  if (plain.echo && !knows.echo) {
    return refuse("malformed", { reason: `echo: the model \`${model.id}\` does not repeat its prompt here.` });
  }
  if (plain.echoAlone === true && knows.echoAlone !== true) {
    return refuse("malformed", { reason: `max_tokens: the model \`${model.id}\` writes at least 1 token here.` });
  }
  return null;
}

export function plainRequest(
  ask: PlainAsk,
  account: AccountId,
  nodeModel: string,
  engine: EngineKind,
  { fields }: KnowingNode = {},
  share: EngineShare = usualShare,
): NodeRequest | LargeNodeRequest {
  const { plain, sampling } = ask;
  const traits = engineTraits[engine];
  const { logprobs: _, top_logprobs: logprobs, ...others } = sampling;
  const rest: Record<string, unknown> = {
    ...streamFields(traits),
    max_tokens: plain.echoAlone === true ? 0 : ask.outputTokensMax,
  };
  const [sentStops, stops] = stopsFor(ask, traits, false);
  if (sentStops.length > 0) rest["stop"] = sentStops;
  addSampling(rest, others, traits, false);
  if (logprobs !== undefined) rest["logprobs"] = logprobs;
  if (plain.suffix !== null) rest["suffix"] = plain.suffix;
  if (plain.echo) rest["echo"] = true;
  addEngineFields(rest, ask, engine, fields);
  Object.assign(rest, shareFields(traits.prefixCache, share, account));
  const body = withPrompt(ask, nodeModel, "prompt", rest);
  const expected = { textNamesCall: false, stops };
  return typeof body === "string" ? { body, expected } : { body, expected };
}

/** The body that has the node count the prompt as it would read it. */
export function countedPrompt(ask: PlainAsk, nodeModel: string, engine: EngineKind): readonly Buffer[] {
  const ofLlama = engine === "llama.cpp";
  const { suffix } = ask.plain;
  // Ollama counts it when it reads the prompt.
  const rest = ofLlama ? { add_special: true } : engine === "ollama" && suffix !== null ? { suffix } : {};
  const body = withPrompt(ask, nodeModel, ofLlama ? "content" : "prompt", rest);
  return typeof body === "string" ? [Buffer.from(body)] : body;
}

function withPrompt(
  { turns, prepared }: PlainAsk,
  nodeModel: string,
  field: "prompt" | "content",
  rest: Readonly<Record<string, unknown>>,
): string | readonly Buffer[] {
  const begin = `{"model":${JSON.stringify(nodeModel)},"${field}":`;
  const more = JSON.stringify(rest);
  const end = more === "{}" ? "}" : `,${more.slice(1)}`;
  if (prepared !== undefined) return [Buffer.from(begin), prepared.messages, Buffer.from(end)];
  const [prompt] = turns;
  return begin + (prompt?.role === "prompt" ? promptJson(prompt) : '""') + end;
}
