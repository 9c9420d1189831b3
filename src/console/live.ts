// The console's event stream: numbers of accounts, and of nodes for operators. One timer looks twice a second.
import { keepAliveIntervalMs } from "../core/limits.ts";
import { assert } from "../core/assert.ts";
import type { LiveRequests } from "../http/site.ts";
import { StoreUnavailable } from "../core/types.ts";
import type { LiveEvent, OperatorNumbers } from "./api/live.ts";
import { numbersOf } from "./numbers.ts";
import type { ConsoleParts, Everywhere } from "./parts.ts";
import { privateHeaders } from "./reply.ts";
import { fail, type Failure, type Visitor } from "./routes/route.ts";

/** Numbers are sent at most twice a second. */
export const liveIntervalMs = 500;
const liveStreamsMax = 2_000;
export const liveStreamsPerAccountMax = 16;

assert(liveStreamsPerAccountMax < liveStreamsMax, "an account leaves room to others: live pages");

type Parts = Pick<ConsoleParts, "office" | "sessions" | "nodes" | "alerts" | "reserved" | "clock" | "log"> &
  Readonly<{ everywhere?: Pick<Everywhere, "numbers" | "marks"> | null }>;

/** Unchanged looks after which a keep-alive comment is sent. */
const keepAliveLooks = keepAliveIntervalMs / liveIntervalMs;

export class Live {
  readonly #parts: Parts;
  readonly #requests: LiveRequests;
  readonly #streams = new Set<Stream>();
  #timer: Timer | null = null;
  #isLooking = false;

  constructor(parts: Parts, requests: LiveRequests) {
    this.#parts = parts;
    this.#requests = requests;
  }

  get requests(): LiveRequests {
    return this.#requests;
  }

  open(visitor: Visitor): Response | Failure {
    const { id } = visitor.account;
    const own = [...this.#streams].filter(({ visitor: { account } }) => account.id === id).length;
    if (own >= liveStreamsPerAccountMax || this.#streams.size >= liveStreamsMax) {
      return fail("busy", "Too many pages are open.", 60);
    }
    let stream: Stream;
    const body = new ReadableStream<Uint8Array>({
      start: async (controller) => {
        stream = new Stream(visitor, controller);
        this.#streams.add(stream);
        this.#timer ??= setInterval(() => void this.look(), liveIntervalMs);
        await this.#look(stream, visitor.account.operator ? await this.#forOperators() : null);
      },
      cancel: () => this.#drop(stream),
    });
    const headers = {
      ...privateHeaders,
      "content-type": "text/event-stream; charset=utf-8",
      "x-accel-buffering": "no",
    };
    return new Response(body, { headers });
  }

  async operatorNumbers(): Promise<OperatorNumbers> {
    const { nodes, reserved, alerts, everywhere = null } = this.#parts;
    const common = { waiting: nodes.waiting, alerts: alerts.latest.length };
    const states = [...(await nodes.states())];
    if (everywhere !== null) {
      const { openRequests, heldTokens, gateways } = await everywhere.numbers();
      const sums = { requests_in_flight: openRequests, reserved_tokens: heldTokens, gateways };
      return { nodes: states, ...common, ...sums };
    }
    return {
      nodes: states,
      ...common,
      requests_in_flight: this.#requests.openRequests,
      reserved_tokens: reserved.heldTokens,
    };
  }

  /** One look at everything that has listeners; only one runs at a time. */
  async look(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    try {
      const hasOperator = [...this.#streams].some(({ visitor }) => visitor.account.operator);
      const forOperators = hasOperator ? await this.#forOperators() : null;
      const marks = await this.#marks();
      for (const stream of this.#streams) {
        if (marks === null || !this.#isAsBefore(stream, marks)) await this.#look(stream, forOperators);
        else this.#goOn(stream, forOperators);
      }
    } finally {
      this.#isLooking = false;
    }
  }

  /** Ends all streams; their pages reconnect. */
  close(): void {
    for (const stream of this.#streams) {
      stream.end();
      this.#drop(stream);
    }
  }

  /** One read for all streams; null if there is none or it fails, so that each stream looks for itself. */
  async #marks(): Promise<ReadonlyMap<number, string> | null> {
    const { everywhere = null } = this.#parts;
    if (everywhere === null) return null;
    const seen = [...this.#streams].map(({ visitor: { account, session } }) => ({
      account: account.id,
      session: session.id,
    }));
    return everywhere.marks(seen).catch(nullIfUnavailable);
  }

  /** Midnight and the end of a session change no row, so each stream also looks for itself now and then. */
  #isAsBefore(stream: Stream, marks: ReadonlyMap<number, string>): boolean {
    const { account, session } = stream.visitor;
    const found = marks.get(session.id);
    const mark = found === undefined ? null : `${found} ${this.#requests.openRequestsOf(account.id)}`;
    stream.looks += 1;
    if (mark !== null && mark === stream.mark && stream.looks < keepAliveLooks) return true;
    stream.mark = mark;
    stream.looks = 0;
    return false;
  }

  #goOn(stream: Stream, forOperators: OperatorNumbers | null): void {
    if (!stream.isRead) {
      stream.mark = null; // it gets everything when it is read again
      return;
    }
    if (stream.visitor.account.operator && forOperators !== null)
      stream.send({ event: "operator", data: forOperators });
    stream.keepAlive();
  }

  #forOperators(): Promise<OperatorNumbers | null> {
    return this.operatorNumbers().catch(nullIfUnavailable);
  }

  async #look(stream: Stream, forOperators: OperatorNumbers | null): Promise<void> {
    const { visitor } = stream;
    const { sessions, clock, log } = this.#parts;
    try {
      if (!(await sessions.isOpen(visitor.session, clock.wall()))) {
        if (!this.#streams.has(stream)) return;
        stream.send({ event: "ended", data: {} });
        stream.end();
        return this.#drop(stream);
      }
      if (!stream.isRead) {
        stream.mark = null;
        return;
      }
      const { id, operator } = visitor.account;
      const numbers = await numbersOf(this.#parts, id, this.#requests.openRequestsOf(id));
      if (!this.#streams.has(stream)) return; // it ended meanwhile
      stream.send({ event: "account", data: numbers });
      if (operator && forOperators !== null) stream.send({ event: "operator", data: forOperators });
      stream.keepAlive();
    } catch (thrown) {
      // The disk may work again at the next look.
      if (!(thrown instanceof StoreUnavailable)) throw thrown;
      stream.mark = null;
      log("warn", "live numbers cannot be read", { reason: thrown.message });
    }
  }

  #drop(stream: Stream): void {
    this.#streams.delete(stream);
    if (this.#streams.size > 0 || this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }
}

function nullIfUnavailable(thrown: unknown): null {
  if (thrown instanceof StoreUnavailable) return null;
  throw thrown;
}

const encoder = new TextEncoder();

class Stream {
  readonly #controller: ReadableStreamDefaultController<Uint8Array>;
  readonly #sent = new Map<string, string>();
  #silentLooks = 0;
  /** The state of its account at its latest own look, and the number of looks since. */
  mark: string | null = null;
  looks = 0;

  constructor(
    readonly visitor: Visitor,
    controller: ReadableStreamDefaultController<Uint8Array>,
  ) {
    this.#controller = controller;
  }

  /** False while the browser reads nothing: nothing is queued then, and it gets the latest numbers later. */
  get isRead(): boolean {
    return (this.#controller.desiredSize ?? 0) > 0;
  }

  send({ event, data }: LiveEvent): void {
    const json = JSON.stringify(data);
    if (this.#sent.get(event) === json) return;
    this.#sent.set(event, json);
    this.#write(`event: ${event}\ndata: ${json}\n\n`);
  }

  keepAlive(): void {
    this.#silentLooks += 1;
    if (this.#silentLooks > keepAliveLooks) this.#write(": alive\n\n");
  }

  end(): void {
    this.#controller.close();
  }

  #write(text: string): void {
    this.#silentLooks = 0;
    this.#controller.enqueue(encoder.encode(text));
  }
}
