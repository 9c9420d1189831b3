// What a node's error means for the client, who never sees its words; the operator's log gets them cleaned.
import { budgetLimitsAnswer } from "../../core/answer-budget.ts";
import type { Forecast } from "../../core/forecast.ts";
import { busyRetrySeconds } from "../../core/limits.ts";
import { nodeErrorTextMaxLength } from "../limits.ts";
import { refuse } from "../../core/refusals.ts";
import type { Ask, Elsewhere, Ending, Model, Refusal } from "../../core/types.ts";
import { clientFaultOf } from "./client-faults.ts";
import { parseNodeJson, record } from "../json.ts";
import type { RefusalCause } from "../queue/slot-queue.ts";
import { loggableWords, messageOfError } from "./node-words.ts";
import { type Overflow, overflowOf } from "./overflow.ts";
import { estimatedInput } from "../usage.ts";

/** `retry-after` of a refusal because all nodes of a model are drained: restarting an engine takes minutes. */
const pausedRetrySeconds = 30;

/** A failed Ending with the cause for the operator's log. */
export type Failure = Readonly<{
  refusal: Refusal;
  elsewhere: Elsewhere;
  /** For the log; contains only those of the node's own words that may appear there. */
  cause: string;
  /** Who can fix it: the client (with another request), the operator (key, model name, address), or the node. */
  blames: "client" | "operator" | "node";
  ofSchema?: true;
  overflow?: Overflow;
  lacksModel?: true;
}>;

const seconds = busyRetrySeconds;
export const busy: Refusal = refuse("busy", { seconds });

/** For a request that gets no node. `isOwn`: the specification has no refusal for its model. */
export function refusalOf(cause: RefusalCause, model: string, isOwn: boolean, forecast?: Forecast): Refusal {
  switch (cause) {
    case "drained":
      return refuse("model_paused", { model, seconds: pausedRetrySeconds });
    case "full":
      return refuse("busy", { seconds, reason: "too_many_waiting", ...factsOf(forecast) });
    case "waited-too-long":
      return refuse("busy", { seconds, reason: "waited_too_long", ...factsOf(forecast) });
    case "too-late":
      return tooLate(forecast);
    case "away":
      return away(model, isOwn);
    case "unlisted":
      return isOwn
        ? refuse("model_unlisted", { model, reason: "not_listed" })
        : refuse("busy_unlisted", { seconds, reason: "not_listed" });
  }
}

const away = (model: string, isOwn: boolean): Refusal =>
  isOwn
    ? refuse("model_unreachable", { model, reason: "nodes_unreachable" })
    : refuse("busy_unreachable", { seconds, reason: "nodes_unreachable" });

/** `forecast` is absent where the deadline passed in line, and the request was just about to begin. */
export function tooLate(forecast: Forecast = { position: 1, waitMs: 0, firstTokenMs: 0 }): Refusal {
  return refuse("deadline_unmet", factsOf(forecast));
}

function factsOf(forecast: Forecast | undefined): NonNullable<Refusal["detail"]> {
  if (forecast === undefined) return {};
  const { position, firstTokenMs } = forecast;
  return { position, expected_first_token_ms: Math.round(firstTokenMs) };
}

const isOwnModel = ({ tier }: Model): boolean => tier === "own";

export function failed({ refusal, elsewhere, blames, ofSchema }: Failure): Ending {
  const ending = { kind: "failed", refusal, elsewhere } as const;
  if (blames !== "client") return ending;
  return ofSchema === true ? { ...ending, ofRequest: true, ofSchema } : { ...ending, ofRequest: true };
}

/** The node is at fault: the client gets a 500. */
export function nodeFailed(cause: string, elsewhere = false): Failure {
  return { refusal: refuse("node_failed"), elsewhere, cause, blames: "node" };
}

/** The node is up but cannot take the request now. */
function nodeBusy(cause: string): Failure {
  const refusal = refuse("busy", { seconds, reason: "nodes_full" });
  return { refusal, elsewhere: true, cause, blames: "node" };
}

/** The node cannot be reached, or is still starting. */
export function nodeAway({ model }: Ask, cause: string): Failure {
  return { refusal: away(model.id, isOwnModel(model)), elsewhere: true, cause, blames: "node" };
}

/** An error status with its body (cut at nodeErrorBodyMaxBytes). */
export function failureOfStatus(ask: Ask, status: number, body: string): Failure {
  const text = body.slice(0, nodeErrorTextMaxLength);
  const cause = causeOf(`status ${status}`, text, ask);
  // (1) the request is at fault, judged by the words because the status differs between engines
  if (status === 400 || status === 413 || status === 422 || status === 500) {
    const fault = requestFault(ask, text, cause);
    if (fault !== null) return fault;
  }
  // (2) no room at the moment, or llama-server is starting
  if (status === 503 && text.toLowerCase().includes("loading model")) return nodeAway(ask, cause);
  if (status === 429 || status === 503) return nodeBusy(cause);
  // (3) it has a different model than expected
  if (isUnknownModel(status, text)) {
    const model = ask.model.id;
    const isOwn = isOwnModel(ask.model);
    const refusal = isOwn ? refusalOf("unlisted", model, isOwn) : refuse("model_unavailable", { model });
    return { refusal, elsewhere: true, cause, blames: "operator", lacksModel: true };
  }
  // (4) it has no such route
  if (ask.plain !== undefined && (status === 404 || status === 405 || status === 501)) {
    const reason = `The model \`${ask.model.id}\` gives no plain completions here: ask it at /v1/chat/completions.`;
    return { refusal: refuse("malformed", { reason }), elsewhere: "unlike", cause, blames: "client" };
  }
  // (5) the configuration does not match the node
  if (status === 401 || status === 403 || status === 404) return { ...nodeFailed(cause), blames: "operator" };
  // (6) the node refuses what the client wants from the model
  if (status === 400 || status === 422) return notAccepted(cause);
  if (status === 413) {
    const reason = "The request is too large for the model.";
    return { refusal: refuse("malformed", { reason }), elsewhere: false, cause, blames: "client" };
  }
  // (7) everything else, including redirects: the node is at fault
  return nodeFailed(cause);
}

/**
 * The request was built here from checked values: what remains is a combination that this model or engine does not
 * take, or a size that a proxy before it does not.
 */
function notAccepted(cause: string): Failure {
  const reason = "The model does not accept this combination of parameters or messages.";
  return { refusal: refuse("malformed", { reason }), elsewhere: false, cause, blames: "client" };
}

/** An error inside a 200 stream; `payload` is the event. `begun`: Pieces were already delivered. */
export function failureOfEvent(ask: Ask, payload: string, begun: boolean): Failure {
  const text = payload.slice(0, nodeErrorTextMaxLength);
  const cause = causeOf("error event", text, ask);
  const fault = requestFault(ask, text, cause);
  if (fault !== null) return begun ? { ...fault, elsewhere: false } : fault;
  const event = record(parseNodeJson(payload));
  const error = record(event?.["error"]) ?? event;
  const said = error?.["code"] ?? error?.["http_status_code"] ?? error?.["status"];
  const code = typeof said === "string" || typeof said === "number" ? Number(said) : Number.NaN;
  const words = [error?.["type"], error?.["message"], event?.["error"]]
    .filter((text) => typeof text === "string")
    .join(" ");
  if (code === 429 || code === 503 || /overloaded|queue is full|server busy|rate.?limit/i.test(words))
    return { ...nodeBusy(cause), elsewhere: !begun };
  // vLLM and SGLang find a request at fault only after they have sent a status for its stream.
  if (!begun && (code === 400 || code === 422)) return notAccepted(cause);
  return nodeFailed(cause);
}

function causeOf(what: string, text: string, ask: Ask): string {
  const words = loggableWords(messageOfError(text), ask);
  return words === null ? what : `${what}: ${words}`;
}

/** vLLM, Ollama, llama-server; LiteLLM; transformers. */
const isUnknownModel = (status: number, text: string): boolean =>
  (status === 404 && /model/i.test(text) && /not (?:exist|found)/i.test(text)) ||
  (status === 400 && /Invalid model name passed|Server is pinned to/.test(text));

/** What the words show about the request: too long, or of a kind that the model or its engine does not take; otherwise null. */
function requestFault(ask: Ask, text: string, cause: string): Failure | null {
  const overflow = overflowOf(text);
  if (overflow !== null)
    return { refusal: tooLong(ask, overflow), elsewhere: false, cause, blames: "client", overflow };
  const fault = clientFaultOf(ask, messageOfError(text).toLowerCase());
  if (fault === null) return null;
  const { reason, unlike, ofSchema } = fault;
  const elsewhere = unlike ? "unlike" : false;
  const refusal = refuse("malformed", { reason });
  return { refusal, elsewhere, cause, blames: "client", ...(ofSchema ? { ofSchema } : {}) };
}

/** The refusal of a prompt that does not fit, with the node's numbers if plausible. Agents rely on tokens > maximum. */
export function tooLong(ask: Ask, { promptTokens, promptTokensMin, totalTokens, contextTokens }: Overflow): Refusal {
  const maximum = contextTokens ?? ask.model.contextTokens;
  // The node does not say which of several inputs it is.
  const own = ask.inputs === undefined ? estimatedInput(ask) : 0;
  const prompt = promptTokens ?? Math.max(promptTokensMin ?? 0, own);
  if (prompt > maximum) return refuse("context_length_exceeded", { tokens: prompt, maximum });
  // A prompt that fills the context leaves no room for an answer.
  if (promptTokens === maximum) return refuse("context_length_exceeded", { tokens: prompt, maximum: maximum - 1 });
  const budget = totalTokens === null || promptTokens === null ? ask.outputTokensMax : totalTokens - promptTokens;
  if (budgetLimitsAnswer(ask) && prompt + budget > maximum) {
    return refuse("context_budget_exceeded", { input: prompt, budget, maximum });
  }
  return refuse("context_length_exceeded", { tokens: Math.max(totalTokens ?? 0, maximum + 1), maximum });
}
