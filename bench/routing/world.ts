// A trace before engines in virtual time: minutes of load in seconds.
import type { Ms } from "../../src/core/types.ts";
import { Engine, enginesOfSpeed, Job } from "./engine.ts";
import {
  answerBegins,
  answerEnds,
  answerTo,
  type EnginePrompt,
  GrowingText,
  type Message,
  writtenOut,
} from "./text.ts";
import { messagesOf, type Session, type Trace } from "./traces.ts";

/** A request, and what became of it. */
export type Row = {
  readonly session: Session;
  readonly at: Ms;
  readonly inputTokens: number;
  readonly outputTokens: number;
  cachedTokens: number;
  node: number | null;
  /** From `at` on. */
  firstMs: Ms | null;
  /** When it ended. */
  endMs: Ms | null;
  failure: string | null;
};

/** A request for which a policy chooses a node. */
export type Asked = Readonly<{ row: Row; session: Session; messages: readonly Message[]; prompt: EnginePrompt }>;

/** Called in this order: `arrived`, `began`, `ended`, or `failed` in place of the last two. */
export interface Policy {
  arrived(asked: Asked): void;
  began?(asked: Asked, node: number): void;
  ended?(asked: Asked, node: number): void;
  /** Its node went down before its first token. */
  failed?(asked: Asked, node: number): void;
  nodeChanged?(): void;
}

/** What a policy may do, and see. */
export interface Fleet {
  readonly now: Ms;
  readonly trace: Trace;
  readonly engines: readonly Engine[];
  /** Nodes that are up and have the model. */
  nodesFor(session: Session): number[];
  isUp(node: number): boolean;
  /** When its step under way ends. */
  stepEndsAt(node: number): Ms;
  later(ms: Ms, then: () => void): void;
  /** Once for each request. */
  send(asked: Asked, node: number): void;
  refuse(asked: Asked, failure: string): void;
}

/** `isSalted`: engines keep accounts apart. */
export type PolicyOf = (fleet: Fleet) => Policy;

type Placed = Readonly<{ asked: Asked; node: number; job: Job }>;

/** Messages so far, and their text. */
type Talk = { messages: Message[]; text: GrowingText };

export class World implements Fleet {
  now = 0;
  readonly rows: Row[] = [];
  readonly engines: readonly Engine[];
  readonly #isDown: boolean[];
  readonly #isStepping: boolean[];
  readonly #stepEndsAt: Ms[];
  readonly #policy: Policy;
  readonly #placed = new Map<Asked, Placed>();
  readonly #answered = new Map<Asked, () => void>();
  /** The next event last. */
  readonly #events: { at: Ms; then: () => void }[] = [];

  constructor(
    readonly trace: Trace,
    policyOf: PolicyOf,
    readonly isSalted = false,
  ) {
    this.engines = trace.nodes.map(({ speed }) => new Engine(enginesOfSpeed(speed)));
    this.#isDown = this.engines.map(() => false);
    this.#isStepping = this.engines.map(() => false);
    this.#stepEndsAt = this.engines.map(() => 0);
    for (const session of trace.sessions) this.later(session.turns[0]!.at, () => this.#ask(session, 0, null));
    for (const { at, node, what } of trace.faults) this.later(at, () => this.#meet(what, node));
    this.#policy = policyOf(this);
  }

  isUp(node: number): boolean {
    return !this.#isDown[node];
  }

  stepEndsAt(node: number): Ms {
    return this.#stepEndsAt[node]!;
  }

  nodesFor({ model }: Session): number[] {
    return this.engines.flatMap((_engine, node) =>
      this.isUp(node) && this.trace.nodes[node]!.models.includes(model) ? [node] : [],
    );
  }

  later(ms: Ms, then: () => void): void {
    const at = this.now + ms;
    let low = this.#events.length;
    while (low > 0 && this.#events[low - 1]!.at <= at) low--;
    this.#events.splice(low, 0, { at, then });
  }

  run(untilMs: Ms): void {
    for (;;) {
      const next = this.#events.at(-1);
      if (next === undefined || next.at > untilMs) break;
      this.#events.pop();
      this.now = next.at;
      next.then();
    }
    this.now = untilMs;
  }

  /** Until every answer that began is complete. */
  runToEnd(): void {
    const patienceMs = 600_000;
    const endMs = this.now + patienceMs;
    while (this.#answered.size > 0 && this.now < endMs) this.run(this.now + 1_000);
  }

  send(asked: Asked, node: number): void {
    if (this.#isDown[node]) return this.later(1, () => this.#retry(asked, node));
    const { row } = asked;
    const job: Job = new Job(
      asked.prompt,
      row.outputTokens,
      () => {
        row.cachedTokens = job.cached;
        row.firstMs = this.now - row.at;
        this.#policy.began?.(asked, node);
      },
      () => {},
      () => {
        row.endMs = this.now;
        this.#placed.delete(asked);
        this.#policy.ended?.(asked, node);
        this.#done(asked);
      },
    );
    row.node = node;
    this.#placed.set(asked, { asked, node, job });
    this.engines[node]!.take(job);
    if (!this.#isStepping[node]) this.#step(node);
  }

  refuse(asked: Asked, failure: string): void {
    asked.row.failure = failure;
    this.#done(asked);
  }

  /** Work of these requests up to now, in that of an input token, if an output token is four. */
  work(fits: (row: Row) => boolean): number {
    const { rows } = this;
    const ended = rows.reduce((sum, row) => sum + (row.endMs !== null && fits(row) ? workOf(row) : 0), 0);
    const open = [...this.#placed.values()].filter(({ asked }) => fits(asked.row));
    return open.reduce((sum, { job }) => sum + job.computed - job.cached + 4 * job.written, ended);
  }

  #done(asked: Asked): void {
    const next = this.#answered.get(asked);
    this.#answered.delete(asked);
    next?.();
  }

  #retry(asked: Asked, node: number): void {
    if (this.#policy.failed === undefined) this.#policy.arrived(asked);
    else this.#policy.failed(asked, node);
  }

  #step(node: number): void {
    const engine = this.engines[node]!;
    const ms = this.#isDown[node] ? null : engine.plan();
    this.#isStepping[node] = ms !== null;
    if (ms === null) return;
    this.#stepEndsAt[node] = this.now + ms;
    this.later(ms, () => {
      engine.apply();
      this.#step(node);
    });
  }

  #ask(session: Session, at: number, before: Talk | null): void {
    const { turns, isFresh, restMs } = session;
    const turn = turns[at % turns.length]!;
    const salt = this.isSalted ? session.account : "";
    const talk = before === null || isFresh ? { messages: [], text: new GrowingText(salt) } : before;
    const messages = messagesOf(turn, isFresh ? `${at}` : "");
    for (const message of messages) talk.text.add(writtenOut(message));
    talk.messages = [...talk.messages, ...messages];
    const answer = answerTo(messages.at(-1)!.content, turn.output);
    const { tokens } = talk.text.add(answerBegins);
    const { blocks } = talk.text.add(answer + answerEnds);
    const row: Row = {
      session,
      at: this.now,
      inputTokens: tokens,
      outputTokens: turn.output,
      cachedTokens: 0,
      node: null,
      firstMs: null,
      endMs: null,
      failure: null,
    };
    this.rows.push(row);
    const asked: Asked = { row, session, messages: talk.messages, prompt: { tokens, blocks } };
    this.#answered.set(asked, () => {
      talk.messages = [...talk.messages, { role: "assistant", content: answer }];
      const next = session.repeats ? turn : turns[at + 1];
      if (next === undefined) return;
      const dueMs = Math.max(next.at, this.now + restMs);
      if (dueMs < this.trace.endMs) this.later(dueMs - this.now, () => this.#ask(session, at + 1, talk));
    });
    this.#policy.arrived(asked);
  }

  #meet(what: "down" | "up" | "cold", node: number): void {
    const engine = this.engines[node]!;
    this.#isDown[node] = what === "down";
    if (what === "down") {
      for (const { asked, job } of [...this.#placed.values()].filter((one) => one.node === node)) {
        engine.leave(job);
        this.#placed.delete(asked);
        if (asked.row.firstMs === null) this.#retry(asked, node);
        else {
          asked.row.failure = "its node went down";
          this.#policy.ended?.(asked, node);
          this.#done(asked);
        }
      }
    }
    if (what !== "up") engine.loseCache();
    if (what !== "cold") this.#policy.nodeChanged?.();
  }
}

const workOf = ({ inputTokens, cachedTokens, outputTokens }: Row): number =>
  inputTokens - cachedTokens + 4 * outputTokens;
