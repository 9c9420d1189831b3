// What is known about one request: filled in while it is served, and read once at its end by the metrics, the log and
// the traces. Their cost comes after the client has its answer, and the code in between does not know its readers.
import type { Priority } from "../core/priority.ts";
import type {
  AccountId,
  Course,
  Delivered,
  Endpoint,
  Ending,
  FinishReason,
  KeyId,
  Ask,
  Model,
  Ms,
  RefusalName,
  Sink,
  Usage,
} from "../core/types.ts";

/** What a trace has of a request beside its record. */
export type Trace = Readonly<{
  /** The caller's place in a trace (W3C Trace Context), unchanged. */
  traceparent: string | null;
  session: string | null;
  tags: readonly string[];
  /** Null: it does not want its prompt and answer there. */
  content: Content | null;
}>;

/** What was asked and said. */
export interface Content {
  /** Whether the account's may be kept. */
  isOf(account: AccountId | null): boolean;
  /** Keeps what is said to the sink. */
  readonly listen: (sink: Sink) => Sink;
  attributes(ask: Ask, finishReason: string): Readonly<Record<string, string>>;
}

/** Start and end on the monotonic clock. */
export type Span = Readonly<{ from: Ms; to: Ms }>;

/** One generation of a model: its wait for a node, and its run there. */
export type RoundRecord = {
  readonly queuedAt: Ms;
  /** Null where no node was assigned. */
  node: string | null;
  startedAt: Ms | null;
  firstPieceAt: Ms | null;
  endedAt: Ms;
  ending: Ending["kind"];
  /** Null where the round failed. */
  usage: Usage | null;
  /** Why the node failed, in its own words, only for operators; null where it did not, or where nothing is known. */
  cause: string | null;
};

/** A call that the gateway ran itself. */
export type ToolCallRecord = Span & Readonly<{ isSearch: boolean; failed: boolean }>;

const noToolCalls: readonly ToolCallRecord[] = [];

export class RequestRecord {
  /** Null until the body was read. */
  model: Model | null = null;
  outputTokensMax: number | null = null;
  priority: Priority = "standard";
  tags: string | undefined;
  streamed = false;
  /** The client's; null where it is unknown. */
  address: string | null = null;
  /** Where it is traced; null until the body was read. */
  ask: Ask | null = null;
  account: AccountId | null = null;
  /** Its number within the account; 0 for a signed-in browser. */
  key: KeyId | null = null;
  /** The end user that the key's program named; null where it may not. Only for the log, never for counts by name. */
  endUser: string | null = null;
  /** HTTP status of the reply; null until its headers are known. */
  status: number | null = null;
  /** Why it was refused or failed. */
  refusal: RefusalName | null = null;
  ending: Ending["kind"] | null = null;
  finishReason: FinishReason | null = null;
  /** For the whole answer: what is charged. */
  usage: Usage | null = null;
  estimated = false;
  media: Span | null = null;
  /** The wait for the charge to reach the disk; `to` is null while the end of the answer is held. */
  settling: { from: Ms; to: Ms | null } | null = null;
  /** Answers that did not fit and were requested again. */
  repeats = 0;
  /** Generations on nodes, including those that were repeated for their format or on another node. */
  readonly rounds: RoundRecord[] = [];
  /** Rounds of the tool loop; 0 for a request without tools of the gateway's own. */
  toolRounds = 0;
  /** Most requests have none and share this list. */
  toolCalls: readonly ToolCallRecord[] = noToolCalls;
  endedAt: Ms | null = null;

  constructor(
    readonly requestId: string,
    readonly endpoint: Endpoint | "none",
    /** Wall-clock and monotonic time of the same moment: spans need the one, durations the other. */
    readonly arrivedWall: Ms,
    readonly arrivedAt: Ms,
    /** Null where there is no tracing. */
    readonly trace: Trace | null = null,
    /** Takes the times between the reads of this answer; null where they are not measured. */
    readonly gap: ((gapMs: Ms) => void) | null = null,
  ) {}

  addToolCall(call: ToolCallRecord): void {
    this.toolCalls = [...this.toolCalls, call];
  }

  /** Another generation begins, with its wait for a node. */
  beginRound(now: Ms): RoundRecord {
    const round: RoundRecord = {
      queuedAt: now,
      node: null,
      startedAt: null,
      firstPieceAt: null,
      endedAt: now,
      ending: "failed",
      usage: null,
      cause: null,
    };
    this.rounds.push(round);
    return round;
  }

  /** The answer was charged; `cancelled`: its client left before its end. */
  answered(ending: Exclude<Ending, { kind: "failed" }>): void {
    this.ending = ending.kind;
    this.usage = ending.usage;
    this.estimated = ending.estimated;
    if (ending.kind === "end") this.finishReason = ending.reason;
  }

  /** The client left before a byte of the reply: nothing was charged. */
  left(): void {
    this.ending = "cancelled";
  }

  /** Nothing was charged but what was `delivered`. */
  failed(reason: RefusalName, delivered: Delivered | null = null): void {
    this.ending = "failed";
    this.refusal = reason;
    this.usage = delivered?.usage ?? null;
    this.estimated = delivered?.estimated ?? false;
  }

  /** The last node's reason for a failure; null where it did not fail on a node. */
  get cause(): string | null {
    if (this.refusal === null) return null;
    return this.rounds.findLast(({ node }) => node !== null)?.cause ?? null;
  }

  course(now: Ms): Course {
    const { rounds, arrivedAt } = this;
    let waitMs = 0;
    let sentAt: Ms | null = null;
    let node: string | null = null;
    for (const { queuedAt, startedAt, endedAt, node: of } of rounds) {
      waitMs += (startedAt ?? endedAt) - queuedAt;
      sentAt ??= startedAt;
      node = of ?? node;
    }
    const { firstPieceAt, priority, model, tags } = this;
    return {
      node,
      waitMs: rounds.length === 0 ? null : Math.round(waitMs),
      sentMs: sentAt === null ? null : Math.round(sentAt - arrivedAt),
      firstTokenMs: firstPieceAt === null ? null : Math.round(firstPieceAt - arrivedAt),
      durationMs: Math.round(now - arrivedAt),
      ...(priority === "standard" ? {} : { priority }),
      ...(model?.standsFor === undefined ? {} : { askedModel: model.standsFor }),
      ...(tags === undefined ? {} : { tags }),
    };
  }

  /** The first piece of the answer that the client sees; null where none came. */
  get firstPieceAt(): Ms | null {
    return this.rounds.find(({ firstPieceAt }) => firstPieceAt !== null)?.firstPieceAt ?? null;
  }
}
