// What a node's error means for the client. A node's own text is read for its meaning and never handed on to a client:
// it may name addresses, models and other people's settings. The operator's log has it, without those.
import { busyRetrySeconds, nodeErrorTextMaxLength } from "../../core/limits.ts";
import { refuse } from "../../core/refusals.ts";
import type { Ask, Elsewhere, Ending, Refusal } from "../../core/types.ts";
import { clientFaultOf } from "./client-faults.ts";
import { parseNodeJson, record } from "../json.ts";
import { loggableWords, messageOfError } from "./node-words.ts";
import { estimatedInput } from "../usage.ts";

/** A failed Ending together with what the operator should read in the log. */
export type Failure = Readonly<{
  refusal: Refusal;
  /** See Ending. */
  elsewhere: Elsewhere;
  /** For the log; of the node's own text only what may stand there. */
  cause: string;
  /** Who can put it right: the client (another request), the operator (key, model name, address), or nobody by name. */
  blames: "client" | "operator" | "node";
  /** See Ending. */
  ofSchema?: true;
}>;

export const busy: Refusal = refuse("busy", { seconds: busyRetrySeconds });

export function failed({ refusal, elsewhere, blames, ofSchema }: Failure): Ending {
  const ending = { kind: "failed", refusal, elsewhere } as const;
  if (blames !== "client") return ending;
  return ofSchema === true ? { ...ending, ofRequest: true, ofSchema } : { ...ending, ofRequest: true };
}

/** The node is at fault: an error of ours to the client. */
export function nodeFailed(cause: string, elsewhere = false): Failure {
  return { refusal: refuse("node_failed"), elsewhere, cause, blames: "node" };
}

/** The node cannot take the request now. */
export function nodeBusy(cause: string): Failure {
  return { refusal: busy, elsewhere: true, cause, blames: "node" };
}

/** An error status with its body (cut at nodeErrorBodyMaxBytes). */
export function failureOfStatus(ask: Ask, status: number, body: string): Failure {
  const text = body.slice(0, nodeErrorTextMaxLength);
  const cause = causeOf(`status ${status}`, text, ask);
  // (1) the request is at fault: by the words, the status differs between engines
  if (status === 400 || status === 413 || status === 422 || status === 500) {
    const fault = requestFault(ask, text, cause);
    if (fault !== null) return fault;
  }
  // (2) no room at the moment
  if (status === 429 || status === 503) return nodeBusy(cause);
  // (3) the configuration does not fit the node
  if (status === 401 || status === 403 || status === 404) return { ...nodeFailed(cause), blames: "operator" };
  // (4) the node refuses what the client asked of the model
  if (status === 400 || status === 422) return notAccepted(cause);
  if (status === 413) {
    const reason = "The request is too large for the model.";
    return { refusal: refuse("malformed", { reason }), elsewhere: false, cause, blames: "client" };
  }
  // (5) everything else, redirects too: the node is at fault
  return nodeFailed(cause);
}

/**
 * The request was built here from checked values: what remains is a combination that this model or engine does not take,
 * or a size that something before it does not.
 */
function notAccepted(cause: string): Failure {
  const reason = "The model does not accept this combination of parameters or messages.";
  return { refusal: refuse("malformed", { reason }), elsewhere: false, cause, blames: "client" };
}

/** An error inside a 200 stream; `payload` is the event. `begun`: Pieces were delivered already. */
export function failureOfEvent(ask: Ask, payload: string, begun: boolean): Failure {
  const text = payload.slice(0, nodeErrorTextMaxLength);
  const cause = causeOf("error event", text, ask);
  const fault = requestFault(ask, text, cause);
  if (fault !== null) return begun ? { ...fault, elsewhere: false } : fault;
  const event = record(parseNodeJson(payload));
  const error = record(event?.["error"]) ?? event;
  const code = Number(error?.["code"] ?? error?.["http_status_code"] ?? error?.["status"]);
  const words = `${error?.["type"] ?? ""} ${error?.["message"] ?? ""} ${typeof event?.["error"] === "string" ? event["error"] : ""}`;
  if (code === 429 || code === 503 || /overloaded|queue is full|server busy|rate.?limit/i.test(words))
    return { ...nodeBusy(cause), elsewhere: !begun };
  // vLLM and SGLang find out that a request is at fault when its stream has a status already.
  if (!begun && (code === 400 || code === 422)) return notAccepted(cause);
  return nodeFailed(cause);
}

function causeOf(what: string, text: string, ask: Ask): string {
  const words = loggableWords(messageOfError(text), ask);
  return words === null ? what : `${what}: ${words}`;
}

/** What the words say of the request: too long, or of a kind that the model or its engine does not take; else null. */
function requestFault(ask: Ask, text: string, cause: string): Failure | null {
  const overflow = contextOverflow(ask, text);
  if (overflow !== null) return { refusal: overflow, elsewhere: false, cause, blames: "client" };
  const fault = clientFaultOf(ask, messageOfError(text).toLowerCase());
  if (fault === null) return null;
  const { reason, unlike, ofSchema } = fault;
  const elsewhere = unlike ? "unlike" : false;
  const refusal = refuse("malformed", { reason });
  return { refusal, elsewhere, cause, blames: "client", ...(ofSchema ? { ofSchema } : {}) };
}

/**
 * Patterns of "the prompt is too long", most telling first; the groups name what the numbers are. Each repeat is bounded:
 * a node may write what it likes.
 */
const overflowPatterns: readonly RegExp[] = [
  /request \((?<tokens>\d{1,15}) tokens\) exceeds the available context size \((?<maximum>\d{1,15}) tokens\)/, // llama-server
  /passed (?<tokens>\d{1,15}) input (?:tokens|characters) and requested (?<output>\d{1,15}) output tokens.{0,200}context length is only (?<maximum>\d{1,15})/s, // vLLM
  /max_(?:completion_)?tokens=\d{1,15}\s{0,9}cannot be greater than/, // vLLM
  /maximum context length is (?<maximum>\d{1,15}) tokens.{0,200}?requested (?:about )?(?<tokens>\d{1,15}) tokens/s, // vLLM, older
  /maximum context length is (?<maximum>\d{1,15})/,
  /input \((?<tokens>\d{1,15}) tokens\) is longer than the model's context length \((?<maximum>\d{1,15})/, // SGLang
  /token count exceeds the model's maximum context length of (?<maximum>\d{1,15})/, // SGLang
  /prompt is longer than the context length/, // Ollama
  /tokens to keep from the initial prompt is greater than the context length/, // LM Studio
  /tokens \+ .max_new_tokens. must be <= (?<maximum>\d{1,15})\. Given: (?<tokens>\d{1,15})/s, // TGI
  /must have less than (?<maximum>\d{1,15}) tokens\. Given: (?<tokens>\d{1,15})/, // TGI
  /prompt length \((?<tokens>\d{1,15})(?:\.\d{1,15})?\).{0,200}should not exceed max_\w{1,40} \((?<maximum>\d{1,15})\)/s, // TensorRT-LLM
  /ContextWindowExceededError/, // LiteLLM
  /context (?:length|size|window)|longer than the model|max_(?:seq_len|num_tokens|model_len)/i,
];

/**
 * The refusal for a prompt that does not fit, or null. Its numbers are the node's where it gave both and they make
 * sense, else our own: agent clients shorten the conversation by what lies between them, so tokens > maximum holds.
 */
function contextOverflow(ask: Ask, said: string): Refusal | null {
  const text = said.slice(0, nodeErrorTextMaxLength); // an event may be much longer
  for (const pattern of overflowPatterns) {
    const match = pattern.exec(text);
    if (match === null) continue;
    const { tokens, output, maximum } = match.groups ?? {};
    const limit = maximum === undefined ? ask.model.contextTokens : Number(maximum);
    const asked = tokens === undefined ? estimatedInput(ask) : Number(tokens);
    const needed = asked > limit ? asked : asked + Number(output ?? 0);
    return refuse("context_length_exceeded", { tokens: Math.max(needed, limit + 1), maximum: limit });
  }
  return null;
}
