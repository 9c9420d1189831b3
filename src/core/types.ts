// Every noun of the gateway. A request becomes an Ask, an Ask is admitted as a Hold, waits for a Slot, and the
// node's answer arrives as Pieces and one Ending. Nothing here knows a dialect, a database or a socket.
import type { Priority } from "./priority.ts";
import type { CountField, Counts } from "./count-limits.ts";
import type { RatesLeft } from "./rates-left.ts";
import type { AnyCancelSignal } from "./cancel-signal.ts";
import type { EngineField } from "./engine-fields.ts";
import type { GenerationBudget } from "./generation-budget.ts";
import type { ModelKind } from "./model-kinds.ts";
import type { PlanId } from "./plan-ids.ts";
import type { Refusal, RefusalName } from "./refusals.ts";

/** Row id of an account, unique within a data folder. */
export type AccountId = number;
/** Number of a key within its account: 1 is the one that every account has, and 0 stands for a signed-in browser. */
export type KeyId = number;
/** Wall-clock milliseconds since 1970 (UTC). */
export type Ms = number;
/** One moment on both clocks: the wall clock for periods, and the one that never steps for durations. */
export type Moment = Readonly<{ wall: Ms; monotonic: Ms }>;
export type { PlanId };
/** The key that every account has from the start, without limits. */
export const defaultKey: KeyId = 1;
/** Stands for a request from the console's playground, which a session authorizes. */
export const noKey: KeyId = 0;

/** How a request went, in milliseconds since it came; null: that did not happen. */
export type Course = Readonly<{
  /** The last one that it was sent to. */
  node: string | null;
  /** For slots on nodes, in all generations together. */
  waitMs: Ms | null;
  /** To the first node. */
  sentMs: Ms | null;
  firstTokenMs: Ms | null;
  /** To its last word, or for a charged request to its charge. */
  durationMs: Ms;
  /** How urgent it was in line; absent: standard. */
  priority?: Priority;
  /** The model that was asked for, where another one stood in for it. */
  askedModel?: string;
  /** What its client called it, for reports (core/request-tags.ts). */
  tags?: string;
}>;

/** What a key may be used for; null: unlimited. */
export type KeyLimits = Readonly<{
  /** From this moment on it is void. */
  expiresAt: Ms | null;
  /** Balance tokens per UTC day, and per month. */
  tokensPerDay: number | null;
  tokensPerMonth: number | null;
  /** Ids or aliases of models. */
  models: readonly string[] | null;
  /** Clients' addresses, as CIDR ranges. */
  addresses: readonly string[] | null;
  /** Its program serves people and names them in its requests; other keys may not name any. */
  forwardsUsers: boolean;
  /** Balance tokens that each of those people may use per UTC day. */
  endUserTokensPerDay: number | null;
  /** What its requests get that ask for none, and the most urgent that they get; never more than the plan allows. */
  priority: Priority | null;
  priorityMax: Priority | null;
  /** Whom its use is booked to, in the place of its account's; only operators set it. */
  costCenter: string | null;
  /** Of a team's key: whose it is, so that what that member may spend holds, too. Null: nobody's. */
  member: AccountId | null;
}> &
  Counts;

/** The account that pays, and which of its keys asks; `limits` is null where the key has none. */
export type Principal = Readonly<{
  account: AccountId;
  key: KeyId;
  limits: KeyLimits | null;
  /** The key's SHA-256 in base64, where admission must compare it, because other gateways may have voided the key. */
  keyHash?: string;
}>;
/** The address that identifies a dialect. */
export type Endpoint = `/${string}`;
/** What a request to a model of the coder tier costs: one of the account's calls, or its tokens. A fact of the dialect. */
export type CoderBilling = "calls" | "tokens";

/**
 * US cents per 1,000,000 model tokens, whole numbers (spec, model table). A shop's own model may cost fractions of a
 * cent: `parts` are added to the cents, and absent where there are none.
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

/** A tokenizer that counts tokens without a node, under the tiktoken package's name. */
export type EncodingName = "o200k_base" | "cl100k_base" | "p50k_base" | "r50k_base";

type StructuredOutput = "json_schema" | "json_object" | "none";

export type { ModelKind };

/** A served model: a row of the catalog (`data/catalog.json`), one of the shop's own, or one that nodes list. */
export type Model = Readonly<{
  id: string;
  kind: ModelKind;
  /**
   * First-party tiers bill usage.total_tokens at one rate; hosted models bill input, cached input and output apart.
   * `own`: like hosted, without what the specification says only about the hosted ones.
   */
  tier: "first-party" | "hosted" | "own";
  /** The nodes' name for it; null where the nodes' configuration has it, or where it is the only model there. */
  nodeModel: string | null;
  /** Other names that requests may use. */
  aliases: readonly string[];
  /** True where lists of models leave it out; requests may still name it. */
  hidden: boolean;
  /** Plans that may use it; null: all. */
  plans: readonly PlanId[] | null;
  /** True where requests may set how deeply it thinks. */
  readsDepth: boolean;
  contextTokens: number;
  readsImages: boolean;
  /** Audio in messages. Absent: it reads none. */
  readsAudio?: boolean;
  structuredOutput: StructuredOutput;
  /** Abilities that neither the shop nor a node claims: requests may use them, and lists do not show them. Absent: none. */
  unclaimed?: readonly ("images" | "tools" | "formats")[];
  price: Price;
  /** True where the output budget limits the answer, so that nodes get it (spec, per-request limits). */
  budgetLimitsAnswer: boolean;
  /** Output budget in tokens of a request that names none, by how its dialect bills the coder tier (spec, per-request limits). */
  outputTokensDefault: Readonly<Record<CoderBilling, number>>;
  /** Estimates a text's tokens for this model where no node counts them. */
  encoding: EncodingName;
  /** True for the coder tier, which some dialects bill in calls instead of tokens. */
  coder: boolean;
  /** What the shop does to its requests; absent: nothing. */
  preset?: Preset;
  /** The most of its requests under way at once, over all accounts and gateways; others wait. Absent: any number. */
  parallel?: number;
  /** What it costs in batches; absent: the plan says. */
  batchPrice?: Price;
  /** Names of models that serve its requests while no node can, the first that can. Absent: none. */
  fallback?: readonly string[];
  /** The id of the model that was asked for and that no node can serve. Absent: this one was asked for. */
  standsFor?: string;
}>;

/** Fields of a request that a shop says. `effort` null, an empty list: not said. */
export type PresetFields = Readonly<{
  sampling: Sampling;
  effort: Effort | null;
  stop: readonly string[];
  engineFields: readonly EngineField[];
  /** For models that hear or speak. Absent: none. */
  voice?: VoiceFields;
}>;
export type VoiceFields = Readonly<Record<string, string | number>>;

/** What a shop does to the requests of a model. */
export type Preset = Readonly<{
  /** Holds whatever the client says. */
  set: PresetFields;
  /** Holds where the client says nothing. */
  default: PresetFields;
  /** Fields of the client's that are left out, under their names in chat completions. */
  remove: readonly string[];
  /** Stands before the client's own instructions; "": nothing. */
  system: string;
}>;

/** An unlimited amount is `amountMax` of core/limits.ts. */
export type Plan = Readonly<{
  id: PlanId;
  /** The plan whose rights it has: itself, unless it is not configured. */
  as: PlanId;
  name: string;
  tokensPerDay: number;
  coderCallsPerWindow: number;
  searchesPerDay: number;
  requestsPerMinute: number;
  /** The shop says how many, so replies do; absent: it is the specification's flood protection. */
  saysRequests?: boolean;
  /** The priority of a request that asks for none, and the highest that one may ask for; absent: "standard". */
  priority?: Priority;
  priorityMax?: Priority;
  /** The part of a price that a batch does not cost, below 1; absent: 0. */
  batchDiscount?: number;
  /** Names of the models that it may use; null: all. */
  models: readonly string[] | null;
  /** No balance: usage is recorded against the day's allowance, which is endless. */
  unlimited: boolean;
}> &
  /** Absent: any number; weight: 1. Of its end users each has what these say. */
  Partial<Readonly<Record<Exclude<CountField, "requestsPerMinute">, number>>>;

/**
 * Model tokens of one reply. `reasoning` is a part of `output`; `inputFresh` excludes `inputCached`. Of a model that hears
 * `inputFresh` is seconds of audio, of one that speaks characters of text.
 */
export type Usage = Readonly<{
  inputFresh: number;
  inputCached: number;
  output: number;
  reasoning: number;
  /** The part of `inputFresh` that the node wrote into its prompt cache. Shown to clients, not billed; absent where unknown. */
  cacheWritten?: number;
}>;
/** Tokens that a request is expected to read, and to write where no budget ends its answer. */
export type Expected = Readonly<{ input: number; output: number }>;
export const noUsage: Usage = { inputFresh: 0, inputCached: 0, output: 0, reasoning: 0 };

export type Effort = "off" | "minimal" | "low" | "medium" | "high" | "max";

export type Part =
  | Readonly<{ kind: "text"; text: string }>
  /** `url` is http(s): or data:, as the client gave it. */
  | Readonly<{ kind: "image"; url: string; detail: string | null }>
  /** `url` is data:. */
  | Readonly<{ kind: "audio"; url: string; format: string }>
  /** A file whose text was not read yet; `url` as for an image. It becomes a text part before a node is asked. */
  | Readonly<{ kind: "file"; url: string; name: string | null }>;
export type MediaPart = Extract<Part, { kind: "image" | "file" }>;
/** A part that must be fetched or read before a node is asked, and how many times it appears in the conversation. */
export type UnreadyPart = Readonly<{ part: MediaPart; places: number }>;

/** A finished tool call in the conversation's history; `arguments` is what the client sent: usually JSON text of an object. */
export type Call = Readonly<{ id: string; name: string; arguments: string }>;

/** One step of the conversation, in no dialect. */
export type Turn =
  | Readonly<{ role: "system"; content: string }>
  | Readonly<{ role: "user"; content: string | readonly Part[] }>
  | Readonly<{ role: "assistant"; content: string | null; reasoning: string | null; calls: readonly Call[] }>
  | Readonly<{ role: "tool"; callId: string; content: string | readonly Part[] }>
  /** What a plain completion continues, as the client wrote it: a text, or (then that is empty) its tokens. */
  | Readonly<{ role: "prompt"; content: string; tokens: readonly number[] | null }>;

/** What a plain completion asks for beside its prompt. */
export type PlainCompletion = Readonly<{
  /** The text that must follow the answer; null: unspecified. */
  suffix: string | null;
  /** The answer begins with the prompt. */
  echo: boolean;
  /** And ends with it: nothing is written, for the log probabilities of the prompt. The budget is then 1. */
  echoAlone?: true;
}>;

export type Tool = Readonly<{
  name: string;
  description: string | null;
  parameters: Record<string, unknown>;
  strict: boolean | null;
}>;
/**
 * `named` forces that one tool; `required` forces any. `mayAnswer`: only the gateway itself wants the call, so an
 * answer without it is also valid.
 */
export type ToolChoice = "auto" | "none" | "required" | Readonly<{ named: string; mayAnswer?: true }>;
export type Format =
  | Readonly<{ kind: "json_object" }>
  | Readonly<{ kind: "json_schema"; name: string; schema: Record<string, unknown>; strict: boolean | null }>;

/** Sampling settings that nodes understand; absent ones are not sent. The dialect has checked the values. */
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

/** How the client wants the web searched. */
export type WebSearch = Readonly<{
  /** The most searches that an answer may make; null: unlimited. */
  usesMax: number | null;
  /** Domains, or beginnings of addresses, without a scheme. Without allowed ones, all are allowed. */
  allowedDomains: readonly string[];
  blockedDomains: readonly string[];
  /** Where the user is, in words, or null. */
  location: string | null;
  /** True if the model calls a function of the client's own in `tools`, `searchFunctionName`. */
  asFunction: boolean;
  /** True if the model must search before it answers. */
  forced: boolean;
}>;

/** Our search answers a client's function of this name that takes a query (spec, Behaviors across endpoints). */
export const searchFunctionName = "web_search";

/** Texts in UTF-8, one after the other; `ends` says where each ends. */
export type EncodedTexts = Readonly<{ bytes: Uint8Array; ends: Uint32Array }>;

/**
 * The conversation of a large body, which a Worker has read and written in the form for a node: as objects on the main
 * thread it would stop every stream for as long as creating them takes. Dispose of it to free its room.
 */
export interface PreparedTurns extends Disposable {
  /** The node's messages as JSON, separated by commas. Meaningless while `unready` is not empty. */
  readonly messages: Buffer;
  /** Where in `messages` the text of the system message ends, which is then the first one; -1: there is none. */
  readonly systemEnd: number;
  /** Its last message is the beginning of the answer. */
  readonly endsOpen: boolean;
  /** Used to find a node that may have its prefix cached. */
  readonly blocks: PromptBlocks;
  /** Inline images, and the bytes of the body that they take. */
  readonly images: number;
  readonly imageBytes: number;
  /** Parts that must be fetched or read before a node is asked, each once. */
  readonly unready: readonly UnreadyPart[];
  /** A copy with those parts replaced by what was found under their keys, or left out, and the body's new size. */
  withMedia(found: ReadonlyMap<string, Part>): Promise<Readonly<{ turns: PreparedTurns; bodyBytes: number }>>;
  /** The texts to count, and further tokens; a refusal where it cannot be read again. Never rejects. */
  render(): Promise<Readonly<{ texts: EncodedTexts; extraTokens: number }> | Refusal>;
}

/**
 * A prompt as chained hashes of its blocks: two prompts share as many of them as their texts begin alike. Made in
 * nodes/queue/prompt-blocks.ts.
 */
export type PromptBlocks = Readonly<{
  /** Each stands for the whole prompt up to the end of its block. */
  hashes: Uint32Array;
  /** The size of the whole prompt in UTF-8. */
  bytes: number;
  /** Stands for the whole prompt, so that its conversation's next turn finds the node that answered it; 0: none. */
  end: number;
  /** The `end` of the previous turn, whose answer is in this prompt, and where that answer ends; 0: none. */
  before: number;
  beforeBytes: number;
}>;

/** The form of each vector: a list of numbers, or its 32-bit floats in base64. */
export type VectorFormat = "float" | "base64";

/**
 * What to ask of a model that holds no conversation: a vector of each input, or how well each fits a query. The inputs
 * are the Ask's turns, one user turn each.
 */
export type Inputs = Readonly<{ count: number }> &
  (
    | Readonly<{
        kind: "vectors";
        /** The sum over all inputs, where they came as lists of tokens; their turns then have the lists as JSON. */
        tokens: number | null;
        format: VectorFormat;
        /** Numbers of each vector; null: the model's default. */
        dimensions: number | null;
      }>
    | Readonly<{
        kind: "scores";
        query: string;
        /** How many of the best to return, at most `count`. */
        best: number;
        returnsDocuments: boolean;
      }>
  );

/** An upload on the disk, which is gone when it is disposed of. */
export interface SpooledFile extends Disposable {
  readonly name: string;
  readonly bytes: number;
  read(at: number, bytes: number): Promise<Buffer>;
}

/** What to ask of a model that hears or speaks. `fields`: as the client named them, without model and file. */
export type Voice =
  | Readonly<{
      kind: "heard";
      translates: boolean;
      file: SpooledFile;
      /** Of the audio. `isGuessed`: its header does not tell. */
      seconds: number;
      isGuessed: boolean;
      fields: readonly (readonly [name: string, value: string])[];
      /** The answer is JSON. */
      isJson: boolean;
    }>
  | Readonly<{ kind: "spoken"; characters: number; format: string; fields: Readonly<Record<string, unknown>> }>;

/** Several answers: `each` to every one of the `prompts`, whose turns are one each. */
export type Answers = Readonly<{ prompts: number; each: number }>;

/** A client's request in no dialect. */
export type Ask = Readonly<{
  endpoint: Endpoint;
  coderBilling: CoderBilling;
  model: Model;
  /** The earlier part of a large body's conversation, before `turns`. */
  prepared?: PreparedTurns;
  turns: readonly Turn[];
  /** Absent: one, to all of its turns. */
  answers?: Answers;
  /** Present where the model continues a prompt (the one turn) without a chat template; the budget then ends the answer. */
  plain?: PlainCompletion;
  /** Only for models of embeddings and reranking. */
  inputs?: Inputs;
  /** Only for models that hear or speak. */
  voice?: Voice;
  /** It goes on without its client, who asks for it later. */
  background?: boolean;
  tools: readonly Tool[];
  toolChoice: ToolChoice;
  parallelToolCalls: boolean | null;
  stop: readonly string[];
  /** Nothing is generated: the client wants the request checked, and an id to continue from. */
  warms?: true | undefined;
  /** Clamped to 1..65,536; always reserved, sent to the node only where it limits the answer. */
  outputTokensMax: number;
  /**
   * For a shop's own model, where the request names no budget: `outputTokensMax` is the maximum, and only as much is
   * held as the answer needs.
   */
  openBudget?: true;
  /** What the answer to such a request may have for now. */
  growing?: GrowingBudget;
  effort: Effort | null;
  format: Format | null;
  /** What the prompt describes because nodes cannot enforce it: a schema, or a call that must be made. */
  inWords?: Readonly<{ schema?: true; call?: true }>;
  /** Null: no web search. */
  webSearch: WebSearch | null;
  stream: boolean;
  sampling: Sampling;
  /** For requests to a shop's own models: only nodes that know all of these are asked. Absent: none. */
  engineFields?: readonly EngineField[];
  /** The urgency that it asks for; absent: none. */
  priority?: Priority;
  /** What its client calls it (core/request-tags.ts). */
  tags?: string;
  /** It is a line of a batch, which limits of a minute do not count. */
  batch?: true;
  /** Its answer is of use only if it begins within this time. Absent: it waits. */
  deadlineMs?: Ms;
  /** What the request may still cost its nodes, shared by all its rounds and answers. Absent: unlimited. */
  generations?: GenerationBudget;
  /** Size of the request body in bytes: the basis of our own input estimate when a node reports no usage. */
  bodyBytes: number;
}>;

/** Output tokens of an open budget: those held for the answer, and the maximum. */
export type OutputHeld = Readonly<{ held: number; most: number }>;

/** An open budget while its answer is written. */
export interface GrowingBudget {
  /** Output tokens that the round may have for now. */
  readonly outputTokens: number;
  /** Output of the answer's earlier rounds. */
  spent: number;
  /**
   * The round has `written` tokens: holds more where it will need more. A promise: the new amount is unknown until it
   * settles.
   */
  grow(written: number): Promise<void> | null;
}

/** A document that an answer may cite; the model reads `text`, and `url` is http(s). */
export type Source = Readonly<{ title: string; url: string; text: string }>;

/** A tool of an operator's MCP server, under the server's own names. */
export type ServerTool = Readonly<{ server: string; name: string }>;

/** The result of a call that the gateway ran itself. */
export type ToolOutcome = Readonly<{
  text: string;
  failed: boolean;
  /** True if it did not run because the client's limit of searches was reached. */
  overLimit?: boolean;
  sources: readonly Source[];
}>;

/**
 * One step of an answer, in no dialect. `literal` is a JSON string literal, quotes included, exactly as in the node's
 * event, so that no dialect has to decode and encode it; it is always valid JSON.
 */
export type Piece =
  | Readonly<{ kind: "reasoning"; literal: string }>
  /** `logprobs` is the JSON text of the choice's logprobs object, or null. */
  | Readonly<{ kind: "text"; literal: string; logprobs: string | null }>
  /** What a model says where it refuses, and its node says that it does: text that is not what was asked for. */
  | Readonly<{ kind: "refusal"; literal: string; logprobs: string | null }>
  /** The start of a tool call; `index` counts from 0 in order of appearance, `id` and `name` are never empty. */
  | Readonly<{ kind: "call"; index: number; id: string; name: string }>
  | Readonly<{ kind: "call-arguments"; index: number; literal: string }>
  /** The gateway begins to run a call itself: a tool of a server, or (null) a web search. Its arguments are an object. */
  | Readonly<{ kind: "owned-call"; call: Call; tool: ServerTool | null }>
  /** The result of the owned call that began last; the next one begins after it. */
  | Readonly<{ kind: "owned-result"; outcome: ToolOutcome }>
  /** The following pieces belong to this one of several answers. */
  | Readonly<{ kind: "answer"; index: number }>
  /** That answer is complete. */
  | Readonly<{ kind: "answer-end"; reason: FinishReason }>
  /** An input's result as JSON: its vector, or its score. No answer has this and other pieces. */
  | Readonly<{ kind: "input"; index: number; json: string }>
  /**
   * The bytes of a voice's answer: audio, a whole transcript, or the JSON of an event. `type`: as the node says.
   * `lacksUsage`: a JSON object that does not tell its usage.
   */
  | Readonly<{ kind: "voice"; bytes: Uint8Array; type: string; lacksUsage?: boolean }>
  /** The text ends with a reference to a source, from `start` to `end` (UTF-16 units) in all its text. */
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
  /** The client left: the node was stopped, and what was produced so far is charged. */
  | Readonly<{ kind: "cancelled"; usage: Usage; estimated: boolean }>
  /**
   * `elsewhere`: no byte of a reply came, so another node may be asked once. `ofRequest`: the node is healthy and
   * refused the request itself, such as a prompt that is too long. `ofSchema`: it refused a JSON schema. `delivered`:
   * neither the gateway nor a node failed, but the answer is not what was asked for; this much is charged if the client
   * has seen any of it.
   */
  | Readonly<{
      kind: "failed";
      refusal: Refusal;
      elsewhere: Elsewhere;
      ofRequest?: true;
      ofSchema?: true;
      delivered?: Delivered;
    }>;

/** The usage of an answer that does not end as it should. */
export type Delivered = Readonly<{ usage: Usage; estimated: boolean }>;

/**
 * Whether another node may be asked once, because no byte of a reply came. "unlike": only one with another model or
 * engine, because equal ones would also refuse the request.
 */
export type Elsewhere = boolean | "unlike";

/** Where a generation's pieces go. All calls are synchronous and must not throw. */
export interface Sink {
  piece(piece: Piece): void;
  /**
   * The same as a piece of that kind without logprobs, whose literal still lies in the read's own buffer from `start`
   * to `end` (valid only during the call). It saves the sink a string for every token.
   */
  literal?(kind: "text" | "reasoning", bytes: Uint8Array, start: number, end: number): void;
  /**
   * Called once after the pieces of one read of the node's socket. Returns null while the client keeps up, otherwise a
   * promise that settles when it has caught up; the node's socket is paused until then.
   */
  flush(): Promise<void> | null;
}

export type { Refusal, RefusalName };

/** Balance reserved for one open request. Settled at most once; what was not settled goes back in full on dispose, once. */
export interface Hold extends Disposable {
  /**
   * Null where the request may begin. Otherwise resolves with null when a coder call's count is on disk (rejects with
   * StoreUnavailable), or when other requests of the account have settled; with the refusal when it waited in vain.
   * Disposing of the hold gives up the place in line.
   */
  readonly ready: Promise<Refusal | null> | null;
  /** Its place among those that wait for the same requests to end, from 1; null: it does not wait, or nobody knows yet. */
  position?(): number | null;
  /** Absent: "standard". */
  readonly priority?: Priority;
  /** What is left of a minute's requests and tokens where they are limited; else null. Absent: null. */
  readonly rates?: RatesLeft | null;
  /**
   * Expects a further round with this many input tokens after rounds with the usage `spent`, and holds as much. False
   * where the account's open requests had used up its balance before that input: then no further round may begin, and
   * no more is held. Throws StoreUnavailable. Absent where there are no rounds.
   */
  expect?(spent: Usage, inputTokens: number, now: Ms): boolean | Promise<boolean>;
  /** For an open budget that costs something, once the request has begun. */
  readonly outputHeld?: OutputHeld | null;
  /**
   * The answer has `written` output tokens: holds more for it, as far as available, and returns how much is held.
   * Throws StoreUnavailable.
   */
  grow?(written: number, now: Ms): number | Promise<number>;
  /**
   * Replaces the reservation by the real charge, at once in memory, and resolves when the charge is on disk, with what
   * was charged: less than the usage where that exceeds the expectation and others may use up the balance. Rejects with
   * StoreUnavailable when the journal gave up; then nothing was charged. Rejects with OutcomeUnknown where that is
   * unknown. `course`: for the request log.
   */
  settle(usage: Usage, estimated: boolean, now: Ms, course?: Course): Promise<Usage>;
}

/** A slot on a node. Disposing of it gives it to the next in line. */
export interface Slot extends Disposable {
  readonly nodeName: string;
  /** Names of the nodes, this one included, with the same engine and the same model for it. */
  alike(modelId: string): ReadonlySet<string>;
  /**
   * Runs one generation on this node; resolves exactly once, never rejects. Aborting `cancelSignal` stops the node at
   * once. `began` is called once, when the first pieces come.
   */
  run(ask: Ask, account: AccountId, cancelSignal: AnyCancelSignal, sink: Sink, began?: () => void): Promise<Ending>;
  /** Why the node failed a generation, in its own words, only for operators. */
  readonly cause?: string | null;
}

/** The balance could not be read or written; nothing was charged (spec: 503 api_error). */
export class StoreUnavailable extends Error {
  override readonly name = "StoreUnavailable";
}

/** The charge was on its way when the books were lost: it is unknown whether it was made, so its client gets no last word. */
export class OutcomeUnknown extends Error {
  override readonly name = "OutcomeUnknown";
}
