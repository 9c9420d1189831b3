// POST /v1/quote: what a request would cost at most and when its answer would begin. Free, and nothing runs.
import { answersOf } from "../core/answer-budget.ts";
import type { Forecast } from "../core/forecast.ts";
import { isRecord } from "../core/is-record.ts";
import type { Priority } from "../core/priority.ts";
import { isRefusal, refuse } from "../core/refusals.ts";
import { unitsOf } from "../core/voices.ts";
import type { Soon } from "../core/soon.ts";
import type { Ask, Model, Principal, Refusal, Usage } from "../core/types.ts";
import type { Dialect } from "../dialects/dialect.ts";
import type { Dialects } from "../dialects/registry.ts";
import { type Body, type GatewayParts, isLarge, readAsk, withUrgency } from "../gateway.ts";
import { toolRoundsMax } from "../tools/tool-loop.ts";
import type { TokenCounts } from "../tokens/node-count.ts";
import { ArrivedHead } from "./incoming.ts";

/** What only the books and the nodes know. */
export type Quotes = Readonly<{
  /** The priority that the request gets, and what it would meet in line. */
  expect(ask: Ask, asker: Principal): Readonly<{ priority: Priority; forecast: Forecast | Refusal }>;
  /** Balance tokens, and the same in dollars. */
  price(
    model: Model,
    usage: Pick<Usage, "inputFresh" | "inputCached" | "output">,
  ): Readonly<{ tokens: number; usd: number }>;
}>;

export type QuoteParts = Pick<GatewayParts, "catalog" | "storedResponses" | "largeBodies" | "toolLoop"> &
  Readonly<{
    dialects: Dialects;
    counts: Pick<TokenCounts, "ofAsk">;
    quotes: Quotes;
    /** Why the plan or the key may not ask for the model; null: it may. */
    admission: { refuseModel(asker: Principal, model: Model): Soon<Refusal | null> };
  }>;

export type Quote = Readonly<{
  object: "quote";
  model: string;
  endpoint: string;
  input_tokens: number;
  /** False: estimated, without the model's own tokenizer. */
  exact: boolean;
  output_tokens_max: number;
  /** Balance tokens; 0 where the request takes one of the account's coder calls instead. */
  price_max: number;
  price_max_usd: number;
  coder_calls: 0 | 1;
  priority: Priority;
  /** 0: it would begin at once; 1: it would be next in line. */
  position: number;
  expected_first_token_ms: number;
}>;

/** The dialect whose body it is; a large body is not looked into, so its address or headers must say it. */
export function quotedDialect(
  request: Request,
  body: Body,
  parts: Pick<QuoteParts, "catalog" | "dialects">,
): Dialect | Refusal {
  const { dialects, catalog } = parts;
  const named = new URL(request.url).searchParams.get("endpoint");
  if (named !== null) {
    const quoted = dialects.all.filter(({ modelKind }) => modelKind !== "transcription"); // a form, and no JSON
    const dialect = quoted.find(({ endpoint }) => endpoint === named);
    const known = quoted.map(({ endpoint }) => endpoint).join(", ");
    return dialect ?? refuse("malformed", { reason: `endpoint must be one of ${known}` });
  }
  if (isLarge(body)) return dialects.ofClient(request.headers);
  if (!isRecord(body.json)) return refuse("malformed", { reason: "The body must be a JSON object" });
  const { model } = body.json;
  const kind = typeof model === "string" ? (catalog.models.get(model)?.kind ?? null) : null;
  const found = dialects.ofBody(body.json, kind, request.headers);
  return (
    found ?? refuse("malformed", { reason: "The body must be that of a request: messages, input, prompt or documents" })
  );
}

export async function quote(
  request: Request,
  body: Body,
  dialect: Dialect,
  asker: Principal,
  parts: QuoteParts,
): Promise<Quote | Refusal> {
  const { account } = asker;
  const head = new ArrivedHead(request, dialect.endpoint, "");
  const read = withUrgency(await readAsk(head, body, asker, dialect, parts), head);
  if (isRefusal(read)) return read;
  const { ask } = read;
  using _conversation = ask.prepared;
  const { model, outputTokensMax } = ask;
  const refused = await parts.admission.refuseModel(asker, model);
  if (refused !== null) return refused;
  const { voice } = ask;
  const characters = voice === undefined ? null : { tokens: unitsOf(voice), exact: true };
  const counted = characters ?? (await parts.counts.ofAsk(ask, account, request.signal));
  if (isRefusal(counted)) return counted;
  const { priority, forecast } = parts.quotes.expect(ask, asker);
  if (isRefusal(forecast)) return forecast;
  const output = outputTokensMax * answersOf(ask);
  // Each further round of our own tools reads what the rounds before came to, up to the model's context.
  const further = parts.toolLoop?.offers(ask, account) === true ? (toolRoundsMax - 1) * model.contextTokens : 0;
  const isCall = model.coder && ask.coderBilling === "calls";
  const most = { inputFresh: counted.tokens + further, inputCached: 0, output };
  const price = isCall ? { tokens: 0, usd: 0 } : parts.quotes.price(model, most);
  return {
    object: "quote",
    model: model.id,
    endpoint: dialect.endpoint,
    input_tokens: counted.tokens,
    exact: counted.exact,
    output_tokens_max: output,
    price_max: price.tokens,
    price_max_usd: price.usd,
    coder_calls: isCall ? 1 : 0,
    priority,
    position: forecast.position,
    expected_first_token_ms: Math.round(forecast.firstTokenMs),
  };
}
