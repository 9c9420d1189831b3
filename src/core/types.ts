// Every noun of the gateway. A request becomes an Ask, an Ask is admitted as a Hold, waits for a Slot, and the
// node's answer arrives as Pieces and one Ending. Nothing here knows a dialect, a database or a socket.
import type { Priority } from "./priority.ts";
import type { AnyCancelSignal } from "./cancel-signal.ts";
import type { EngineField } from "./engine-fields.ts";
import type { GenerationBudget } from "./generation-budget.ts";
import type { PlanId } from "./plan-ids.ts";
import type { Refusal, RefusalName } from "./refusals.ts";

/** Row id of an account, unique within a data folder. */
export type AccountId = number;
/** Number of a key within its account: 1 is the one that every account has, and 0 stands for a signed-in browser. */
export type KeyId = number;
/** Wall-clock milliseconds since 1970 (UTC). */
export type Ms = number;
/** One moment on both clocks: the wall clock for periods, the other, which never steps, for durations. */
export type Moment = Readonly<{ wall: Ms; monotonic: Ms }>;
export type { PlanId };
/** The key that every account has from its start; nothing limits it. */
export const defaultKey: KeyId = 1;
/** A request from the console's playground, which a session allows. */
export const noKey: KeyId = 0;

/** How a request went, in milliseconds since it came; null: that did not happen. */
export type Course = Readonly<{
  /** The last one that it was sent to. */
  node: string | null;
  /** For places on nodes, all passes together. */
  waitMs: Ms | null;
  /** To the first node. */
  sentMs: Ms | null;
  firstTokenMs: Ms | null;
  /** To its last word; of a charged one, to its charge. */
  durationMs: Ms;
}>;

/** What a key may be used for; null where nothing is limited. */
export type KeyLimits = Readonly<{
  /** From this moment on it is void. */
  expiresAt: Ms | null;
  /** Balance tokens of a UTC day, and of a month. */
  tokensPerDay: number | null;
  tokensPerMonth: number | null;
  /** Ids or aliases of models. */
  models: readonly string[] | null;
  /** Of clients, as CIDR ranges. */
  addresses: readonly string[] | null;
  /** It belongs to a program that serves people, and says which of them asks; nobody else is believed. */
  forwardsUsers: boolean;
  /** Balance tokens that each of those people may use in a UTC day. */
  endUserTokensPerDay: number | null;
}>;

/** Who asks: the account that pays, and by which of its keys; `limits` is null where the key has none. */
export type Principal = Readonly<{
  account: AccountId;
  key: KeyId;
  limits: KeyLimits | null;
  /** SHA-256 of the key, base64, where whoever admits must compare it: other gateways may have voided the key. */
  keyHash?: string;
}>;
/** The address by which a dialect is known. */
export type Endpoint = `/${string}`;
/** What a request to a model of the coder tier costs: one of the account's calls, or its tokens. A fact of the dialect. */
export type CoderBilling = "calls" | "tokens";

/**
 * US cents per 1,000,000 model tokens, whole numbers (spec, model table). A shop's own model may cost fractions of a cent:
 * `parts` stand beside the cents, and are absent where there are none.
 */
export type Price =
  | Readonly<{ kind: "flat"; cents: number }>
  | Readonly<{
      kind: "split";
      inputCents: number;
      cachedInputCents: number;
      outputCents: number;
      parts?: CentParts;
    }>;

/** Ten-thousandths of a cent, 0 to 9,999 each. */
export type CentParts = Readonly<{ input: number; cachedInput: number; output: number }>;

/** A tokenizer by which tokens can be counted without a node, as the tiktoken package calls it. */
export type EncodingName = "o200k_base" | "cl100k_base" | "p50k_base" | "r50k_base";

type StructuredOutput = "json_schema" | "json_object" | "none";

/** What a model is asked for: conversations, vectors of texts, or an order of documents. */
export type ModelKind = "chat" | "embedding" | "rerank";

/** One model that is served: a row of the catalog (`data/catalog.json`), one of the shop's own, or one that nodes list. */
export type Model = Readonly<{
  id: string;
  kind: ModelKind;
  /**
   * First-party tiers bill usage.total_tokens at one rate; hosted models bill input, cached input and output apart. `own`:
   * as hosted, without what the specification says of the hosted ones alone.
   */
  tier: "first-party" | "hosted" | "own";
  /** The name that nodes know it by; null where the nodes' configuration says, or it is the only model there. */
  nodeModel: string | null;
  /** Other names that requests may use. */
  aliases: readonly string[];
  /** True where lists of models leave it out; requests may name it. */
  hidden: boolean;
  /** Plans that may use it; null: all. */
  plans: readonly PlanId[] | null;
  /** True where requests may set how deeply it thinks. */
  readsDepth: boolean;
  contextTokens: number;
  readsImages: boolean;
  structuredOutput: StructuredOutput;
  /** What neither the shop nor a node says of it: requests may ask for it, and lists do not claim it. Absent: nothing. */
  unclaimed?: readonly ("images" | "tools" | "formats")[];
  price: Price;
  /** True where the output budget limits the answer, so that it is sent to the node (spec, per-request limits). */
  budgetLimitsAnswer: boolean;
  /**
   * Output budget in tokens of a request that names none, by how its dialect has calls of the coder tier billed (spec,
   * per-request limits).
   */
  outputTokensDefault: Readonly<Record<CoderBilling, number>>;
  /** What estimates the tokens of a text for this model where no node counts them. */
  encoding: EncodingName;
  /** True for the coder tier, of which some dialects are billed in calls, not tokens. */
  coder: boolean;
}>;

/** What is not limited is `amountMax` of core/limits.ts. */
export type Plan = Readonly<{
  id: PlanId;
  /** Whose rights it has: its own id, unless it is not configured. */
  as: PlanId;
  name: string;
  tokensPerDay: number;
  coderCallsPerWindow: number;
  searchesPerDay: number;
  requestsPerMinute: number;
  /** Of the nodes' work, where accounts wait for each other; absent: 1. */
  weight?: number;
  /** What a request has that asks for nothing, and the most that one may ask for; absent: "standard". */
  priority?: Priority;
  priorityMax?: Priority;
  /** Names of the models that it may use; null: all. */
  models: readonly string[] | null;
  /** There is no balance: usage is recorded as used of the day's allowance, which has no end. */
  unlimited: boolean;
}>;

/** Model tokens of one reply. `reasoning` is a part of `output`; `inputFresh` excludes `inputCached`. */
export type Usage = Readonly<{
  inputFresh: number;
  inputCached: number;
  output: number;
  reasoning: number;
  /** Of `inputFresh`: what the node put into its prompt cache. Told to clients, not billed; absent where nothing is said. */
  cacheWritten?: number;
}>;
/** Tokens that a request is expected to read, and to write where no budget ends its answer. */
export type Expected = Readonly<{ input: number; output: number }>;
export const noUsage: Usage = { inputFresh: 0, inputCached: 0, output: 0, reasoning: 0 };

export type Effort = "off" | "minimal" | "low" | "medium" | "high" | "max";

export type Part =
  | Readonly<{ kind: "text"; text: string }>
  /** `url` is http(s): or data: as the client gave it. */
  | Readonly<{ kind: "image"; url: string; detail: string | null }>
  /** A file whose text was not read yet; `url` as of an image. It is a text part before a node is asked. */
  | Readonly<{ kind: "file"; url: string; name: string | null }>;
export type MediaPart = Exclude<Part, { kind: "text" }>;
/** A part that must be fetched or read before a node is asked, and in how many places of the conversation it stands. */
export type UnreadyPart = Readonly<{ part: MediaPart; places: number }>;

/** A finished tool call in the conversation's history; `arguments` is what the client sent: usually JSON text of an object. */
export type Call = Readonly<{ id: string; name: string; arguments: string }>;

/** One step of the conversation, in no dialect. */
export type Turn =
  | Readonly<{ role: "system"; content: string }>
  | Readonly<{ role: "user"; content: string | readonly Part[] }>
  | Readonly<{ role: "assistant"; content: string | null; reasoning: string | null; calls: readonly Call[] }>
  | Readonly<{ role: "tool"; callId: string; content: string | readonly Part[] }>
  /** What a plain completion goes on with, as the client wrote it: a text, or (then that is empty) its tokens. */
  | Readonly<{ role: "prompt"; content: string; tokens: readonly number[] | null }>;

/** What a plain completion asks for beside its prompt. */
export type PlainCompletion = Readonly<{
  /** What is to follow the answer; null: nothing is said of it. */
  suffix: string | null;
  /** The answer begins with the prompt. */
  echo: boolean;
  /** And ends with it: nothing is written, for the log probabilities of the prompt. The budget is 1 then. */
  echoAlone?: true;
}>;

export type Tool = Readonly<{
  name: string;
  description: string | null;
  parameters: Record<string, unknown>;
  strict: boolean | null;
}>;
/**
 * `named` forces that one tool; `required` forces any. `mayAnswer`: the gateway itself would have the tool called first, so
 * that an answer without it is one too.
 */
export type ToolChoice = "auto" | "none" | "required" | Readonly<{ named: string; mayAnswer?: true }>;
export type Format =
  | Readonly<{ kind: "json_object" }>
  | Readonly<{ kind: "json_schema"; name: string; schema: Record<string, unknown>; strict: boolean | null }>;

/** Sampling settings that nodes understand; absent ones are not sent. Values were checked by the dialect. */
export type Sampling = Readonly<{
  temperature?: number;
  top_p?: number;
  top_k?: number;
  min_p?: number;
  presence_penalty?: number;
  frequency_penalty?: number;
  repetition_penalty?: number;
  seed?: number;
  logit_bias?: Readonly<Record<string, number>>;
  logprobs?: boolean;
  top_logprobs?: number;
}>;

/** How a client wants the web searched. */
export type WebSearch = Readonly<{
  /** The most searches that an answer may make; null: as many as the model wants. */
  usesMax: number | null;
  /** Domains, or beginnings of addresses, without a scheme; without allowed ones all are. */
  allowedDomains: readonly string[];
  blockedDomains: readonly string[];
  /** Where the user is, in words, or null. */
  location: string | null;
  /** True if a function of the client's own in `tools`, `searchFunctionName`, is what the model calls. */
  asFunction: boolean;
  /** True if the model must search before it answers. */
  forced: boolean;
}>;

/** A client's function of this name that takes a query is answered by our search (spec, Behaviors across endpoints). */
export const searchFunctionName = "web_search";

/** Texts in UTF-8, one after the other; `ends` says where each ends. */
export type EncodedTexts = Readonly<{ bytes: Uint8Array; ends: Uint32Array }>;

/**
 * The conversation of a large body, which a Worker has read and written down as a node gets it: as objects of the main
 * thread it would stop every stream for as long as it takes to make them. Disposing it gives back the room that it takes.
 */
export interface PreparedTurns extends Disposable {
  /** The node's messages as JSON, separated by commas. Without a meaning while there is something in `unready`. */
  readonly messages: Buffer;
  /** Where in `messages` the text of the system message ends, which is then the first one; -1: there is none. */
  readonly systemEnd: number;
  /** Its last message is the beginning of the answer. */
  readonly endsOpen: boolean;
  /** By which a node is found that may have its beginning cached. */
  readonly blocks: PromptBlocks;
  /** Inline images, and the bytes that they take of the body. */
  readonly images: number;
  readonly imageBytes: number;
  /** Parts that must be fetched or read before a node is asked, each once. */
  readonly unready: readonly UnreadyPart[];
  /** With those parts replaced by what was found under their keys, or left out, and the size of the body that this is. */
  withMedia(found: ReadonlyMap<string, Part>): Promise<Readonly<{ turns: PreparedTurns; bodyBytes: number }>>;
  /** What of it must be counted, and tokens beside that; a refusal where it cannot be read again. Never rejects. */
  render(): Promise<Readonly<{ texts: EncodedTexts; extraTokens: number }> | Refusal>;
}

/**
 * A prompt as chained hashes of its blocks: two prompts have so many of them in common as they begin alike. Made in
 * nodes/queue/prompt-blocks.ts.
 */
export type PromptBlocks = Readonly<{
  /** Each stands for all of the prompt up to the end of its block. */
  hashes: Uint32Array;
  /** Of the whole prompt, in UTF-8. */
  bytes: number;
  /** Stands for the whole prompt, by which the next turn of its conversation finds where it was answered; 0: for nothing. */
  end: number;
  /** The `end` of the turn before, whose answer stands in this prompt, and where that answer ends; 0: there is none. */
  before: number;
  beforeBytes: number;
}>;

/** What each vector is written as: a list of numbers, or its 32-bit floats in base64. */
export type VectorFormat = "float" | "base64";

/**
 * What a model that holds no conversation is asked for: a vector of each input, or how well each fits a query. The inputs
 * are the Ask's turns, one turn of the user each.
 */
export type Inputs = Readonly<{ count: number }> &
  (
    | Readonly<{
        kind: "vectors";
        /** Of all inputs, where they came as lists of tokens; their turns have the lists as JSON then. */
        tokens: number | null;
        format: VectorFormat;
        /** Numbers of each vector; null: as many as the model makes. */
        dimensions: number | null;
      }>
    | Readonly<{
        kind: "scores";
        query: string;
        /** The best so many are answered, which is no more than `count`. */
        best: number;
        returnsDocuments: boolean;
      }>
  );

/** Where a request asks for more than one: so many for each of its prompts, whose turns are one each. */
export type Answers = Readonly<{ prompts: number; each: number }>;

/** A client's request in no dialect. */
export type Ask = Readonly<{
  endpoint: Endpoint;
  coderBilling: CoderBilling;
  model: Model;
  /** Of a large body, what comes before `turns`. */
  prepared?: PreparedTurns;
  turns: readonly Turn[];
  /** Absent: one, to all of its turns. */
  answers?: Answers;
  /** Present where the model goes on with a prompt (the one turn) without a chat template; the budget then ends the answer. */
  plain?: PlainCompletion;
  /** Only of requests to models of embeddings and reranking. */
  inputs?: Inputs;
  tools: readonly Tool[];
  toolChoice: ToolChoice;
  parallelToolCalls: boolean | null;
  stop: readonly string[];
  /** Clamped to 1..65,536; always reserved, sent to the node only where it limits the answer. */
  outputTokensMax: number;
  /** Of a shop's own model, where the request names no budget: `outputTokensMax` is the most, and as much is held as the answer needs. */
  openBudget?: true;
  /** What the answer to a request of that kind may have for now. */
  growing?: GrowingBudget;
  effort: Effort | null;
  format: Format | null;
  /** What the prompt describes because nodes cannot enforce it: a schema, or a call that must be made. */
  inWords?: Readonly<{ schema?: true; call?: true }>;
  /** Null: not to be searched for. */
  webSearch: WebSearch | null;
  stream: boolean;
  sampling: Sampling;
  /** Of requests for a shop's own models: a node that does not know them all is not asked. Absent: there are none. */
  engineFields?: readonly EngineField[];
  /** How urgent it asks to be; absent: it does not say. */
  priority?: Priority;
  /** Its answer is of use only if it begins within this time. Absent: it waits. */
  deadlineMs?: Ms;
  /** What the request may still cost its nodes; all its rounds and answers count it down. Absent: nobody counts. */
  generations?: GenerationBudget;
  /** Size of the request body in bytes: the basis of our own input estimate when a node reports no usage. */
  bodyBytes: number;
}>;

/** Output tokens of an open budget: those that are held for the answer, and the most that may come to be. */
export type OutputHeld = Readonly<{ held: number; most: number }>;

/** An open budget while its answer is written. */
export interface GrowingBudget {
  /** Output tokens that the round may have for now. */
  readonly outputTokens: number;
  /** Output of the answer's earlier rounds. */
  spent: number;
  /** The round has so many: more is held where it will need more. A promise: until then it is not known how much. */
  grow(written: number): Promise<void> | null;
}

/** A document that an answer may cite; `text` is what the model reads of it, `url` is http(s). */
export type Source = Readonly<{ title: string; url: string; text: string }>;

/** A tool of an operator's MCP server, under the server's own names. */
export type ServerTool = Readonly<{ server: string; name: string }>;

/** What a call came to that the gateway ran itself. */
export type ToolOutcome = Readonly<{
  text: string;
  failed: boolean;
  /** True if it was not run because the client's limit of searches was reached. */
  overLimit?: boolean;
  sources: readonly Source[];
}>;

/**
 * One step of an answer, in no dialect. `literal` is a JSON string literal, quotes included, exactly as it stood in
 * the node's event, so that no dialect has to decode and encode it; it is always valid JSON.
 */
export type Piece =
  | Readonly<{ kind: "reasoning"; literal: string }>
  /** `logprobs` is the JSON text of the choice's logprobs object, or null. */
  | Readonly<{ kind: "text"; literal: string; logprobs: string | null }>
  /** First sight of a tool call; `index` counts from 0 in order of appearance, `id` and `name` are never empty. */
  | Readonly<{ kind: "call"; index: number; id: string; name: string }>
  | Readonly<{ kind: "call-arguments"; index: number; literal: string }>
  /** The gateway begins to run a call itself: a tool of a server, or (null) a web search. Its arguments are an object. */
  | Readonly<{ kind: "owned-call"; call: Call; tool: ServerTool | null }>
  /** What came of the owned call that began last; the next one begins after it. */
  | Readonly<{ kind: "owned-result"; outcome: ToolOutcome }>
  /** What comes next is of this one of several answers. */
  | Readonly<{ kind: "answer"; index: number }>
  /** That answer is whole. */
  | Readonly<{ kind: "answer-end"; reason: FinishReason }>
  /** What an input came to, as JSON: its vector, or the number that is its score. No answer has this and other pieces. */
  | Readonly<{ kind: "input"; index: number; json: string }>
  /** The text ends with a reference to a source, which stands from `start` to `end` (UTF-16 units) of all its text. */
  | Readonly<{ kind: "citation"; source: Source; start: number; end: number }>;

export type FinishReason = "stop" | "tool_calls" | "length" | "content_filter";

/** How an answer ended; exactly one per generation, after its last Piece. */
export type Ending =
  | Readonly<{
      kind: "end";
      reason: FinishReason;
      stopSequence: string | null;
      usage: Usage;
      estimated: boolean;
    }>
  /** The client left: the node was stopped; what was produced so far is charged. */
  | Readonly<{ kind: "cancelled"; usage: Usage; estimated: boolean }>
  /**
   * `elsewhere`: no byte of a reply came, so another node may be asked once. `ofRequest`: the node is well and refused
   * the request for what it is: its prompt is too long, say. `ofSchema`: it is a JSON schema that it refused. `delivered`: neither the gateway nor a node
   * failed, but the answer itself is not what was asked for; this much is charged if the client has seen any of it.
   */
  | Readonly<{
      kind: "failed";
      refusal: Refusal;
      elsewhere: Elsewhere;
      ofRequest?: true;
      ofSchema?: true;
      delivered?: Delivered;
    }>;

/** What an answer used that does not end as it should. */
export type Delivered = Readonly<{ usage: Usage; estimated: boolean }>;

/**
 * Whether another node may be asked once: no byte of a reply came. "unlike": one with another model or engine, because
 * those that are alike would refuse the request as well.
 */
export type Elsewhere = boolean | "unlike";

/** Where a generation's pieces go. All calls are synchronous and must not throw. */
export interface Sink {
  piece(piece: Piece): void;
  /**
   * The same as a piece of that kind without logprobs, whose literal still lies in the read's own buffer from `start` to
   * `end` (valid during the call only). A sink that has this is spared a string for every token.
   */
  literal?(kind: "text" | "reasoning", bytes: Uint8Array, start: number, end: number): void;
  /**
   * Called once after the pieces of one read of the node's socket. Returns null while the client keeps up, else a
   * promise that settles when it has caught up; the node's socket is paused until then.
   */
  flush(): Promise<void> | null;
}

export type { Refusal, RefusalName };

/** Balance reserved for one open request. Settled at most once; what was not settled goes back in full on dispose, once. */
export interface Hold extends Disposable {
  /**
   * Null where the request may begin, else a promise of it: with null when a coder call's count is on disk (rejects with
   * StoreUnavailable), or when others of the account have settled; with why not, when it waited in vain. Disposing the
   * hold gives the place in line up.
   */
  readonly ready: Promise<Refusal | null> | null;
  /** Absent: "standard". */
  readonly priority?: Priority;
  /**
   * What the rounds so far came to, and the input tokens that the next one is expected to read; so much is counted for
   * the request from then on. False where the account's open requests had come to all that it has before that input: a
   * further round is not begun then, and no more is counted than before. Throws StoreUnavailable. Absent where no rounds are run.
   */
  expect?(spent: Usage, inputTokens: number, now: Ms): boolean | Promise<boolean>;
  /** Of an open budget that costs something, once the request has begun. */
  readonly outputHeld?: OutputHeld | null;
  /** The answer has so many output tokens: holds more for it, as far as there is any, and says how much then is held. Throws StoreUnavailable. */
  grow?(written: number, now: Ms): number | Promise<number>;
  /**
   * Replaces the reservation by the real charge at once in memory and resolves when the charge is on disk, with what was
   * charged: less than the usage where that is beyond what was expected and others may use up what the account has.
   * Rejects with StoreUnavailable when the journal gave up; then nothing was charged. Rejects with OutcomeUnknown where
   * nobody knows. `course`: for the request log.
   */
  settle(usage: Usage, estimated: boolean, now: Ms, course?: Course): Promise<Usage>;
}

/** A place on a node. Disposing it gives the place to the next in line. */
export interface Slot extends Disposable {
  readonly nodeName: string;
  /** Names of the nodes, this one too, that have the same for the model: what it is there, and the engine. */
  alike(modelId: string): ReadonlySet<string>;
  /**
   * Runs one generation on this node; resolves exactly once, never rejects. Aborting `cancelSignal` stops the node at once.
   * `began` is called once, when the first pieces are there.
   */
  run(ask: Ask, account: AccountId, cancelSignal: AnyCancelSignal, sink: Sink, began?: () => void): Promise<Ending>;
  /** Of a generation that failed on the node: why, in its own words as an operator may read them. For no client. */
  readonly cause?: string | null;
}

/** The balance could not be read or written; nothing was charged (spec: 503 api_error). */
export class StoreUnavailable extends Error {
  override readonly name = "StoreUnavailable";
}

/** The charge was on its way when the books were lost: nobody knows whether it was made, so its client is told nothing. */
export class OutcomeUnknown extends Error {
  override readonly name = "OutcomeUnknown";
}
