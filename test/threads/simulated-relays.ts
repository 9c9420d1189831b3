// Sixteen relays and one main thread in one seed: the real books and desks over the real ledger, flood protection and
// slot queue, between channels that keep each relay's own order and no other. What a relay says may lie in its channel for
// as long as the seed likes, and so may the answers.
import { MainThreadClient } from "../../src/threads/main-thread-client.ts";
import { RelaySession } from "../../src/threads/relay-session.ts";
import type { MainThreadAnswer, RelayOperation, ToRelay } from "../../src/threads/messages.ts";
import { MessageBatcher } from "../../src/threads/message-batcher.ts";
import { isRefusal } from "../../src/core/refusals.ts";
import { refusalOf } from "../../src/nodes/failure/failure.ts";
import { noBlocks } from "../../src/nodes/queue/prompt-blocks.ts";
import { SlotQueue } from "../../src/nodes/queue/slot-queue.ts";
import { type Slot, StoreUnavailable, type Usage } from "../../src/core/types.ts";
import { model, Office, output } from "../account/office.ts";
import { randomOf } from "../fixtures/random.ts";
import { idlest } from "../nodes/queue/idlest.ts";

const minuteMs = 60_000;

type SimulatedAccount = { readonly email: string; readonly id: number; key: string };
type Fate = "refused" | "unavailable" | "left" | "whole";

/** Hundreds of times what it takes: something is stuck, and no limit of time would end a loop that gives way to nothing. */
const quietRoundsMax = 20_000;

/** A request that a client has sent to one of the relays. */
type Request = {
  readonly id: string;
  readonly account: SimulatedAccount;
  readonly cancelSignal: AbortController;
  /** It waits for a place on a node. */
  isInLine: boolean;
  /** Ends its generation; null while none runs. */
  end: (() => void) | null;
  fate: Fate | null;
  readonly usage: Usage;
};

/** A relay, its channel in both directions, and what it has not sent yet. */
class SimulatedRelay {
  readonly toMain: string[] = [];
  readonly toRelay: string[] = [];
  readonly mainThread: MainThreadClient;
  readonly session: RelaySession;
  readonly #flushes: (() => void)[] = [];

  constructor(world: SimulatedRelays) {
    const later = (flush: () => void) => void this.#flushes.push(flush);
    const operations = new MessageBatcher<RelayOperation>((json) => void this.toMain.push(json), later);
    const answers = new MessageBatcher<ToRelay>((json) => void this.toRelay.push(json), later);
    this.mainThread = new MainThreadClient(operations, () => world.keysVersion);
    this.session = new RelaySession(world.relaySessionParts(), answers);
  }

  /** Ends turns of both event loops. */
  flush(): void {
    for (const flush of this.#flushes.splice(0)) flush();
  }

  deliver(way: "toMain" | "toRelay"): void {
    const json = this[way].shift();
    if (json === undefined) return;
    if (way === "toMain") return this.session.obey(json);
    for (const message of JSON.parse(json) as MainThreadAnswer[]) this.mainThread.answered(message);
  }

  get idle(): boolean {
    return this.toMain.length + this.toRelay.length + this.#flushes.length === 0;
  }
}

export class SimulatedRelays {
  readonly office = new Office();
  readonly queue = new SlotQueue(Number.MAX_SAFE_INTEGER, 200, idlest);
  readonly relays: readonly SimulatedRelay[];
  readonly accounts: SimulatedAccount[] = [];
  readonly requests: Request[] = [];
  readonly fates: Record<Fate, number> = { refused: 0, unavailable: 0, left: 0, whole: 0 };
  /** Generations that relays run now, by node. */
  readonly running = new Map<string, number>();
  readonly wrong: string[] = [];
  /** Requests that waited for others of their account. */
  waited = 0;
  readonly #random: () => number;
  readonly #slots: Readonly<Record<string, number>> = { one: 1, four: 4 };
  /** Keys that are void, since before any request that is sent from now on. */
  readonly #void = new Set<string>();
  readonly #models = new Map([["core-3", model("core-3")]]);
  keysVersion = 0;
  #next = 1;

  constructor(seed: number, relays = 16) {
    this.#random = randomOf(seed);
    this.relays = Array.from({ length: relays }, () => new SimulatedRelay(this));
    this.office.keys.onVoid = () => void (this.keysVersion += 1);
    this.queue.configure(Object.entries(this.#slots).map(([name, slots]) => ({ name, slots, serves: () => true })));
  }

  relaySessionParts(): ConstructorParameters<typeof RelaySession>[0] {
    const { office, queue } = this;
    return {
      keys: office.keys,
      keysVersion: () => this.keysVersion,
      admission: office.admission,
      models: () => this.#models,
      pool: {
        stand: (place) => queue.enter(place, 0),
        leave: (place) => queue.leave(place),
        forecastAt: (place) => queue.forecastOf(place, 0),
        refusalOf: (cause, model) => refusalOf(cause, model, false),
        slotOn: (nodeName, place) => ({
          nodeName,
          began() {},
          outcome() {},
          [Symbol.dispose]: () => queue.ended(place),
        }),
      },
      storedResponses: null,
      clock: { wall: () => office.now, monotonic: () => office.monotonic },
      log: (_level, event, fields) => void this.wrong.push(`${event}: ${JSON.stringify(fields)}`),
    };
  }

  async start(accounts: number): Promise<void> {
    for (let number = 0; number < accounts; number += 1) {
      const email = `a${number}@x`;
      const { id, api_key } = await this.office.accounts.create({
        email,
        plan: "free",
        credit: number % 2 === 0 ? 20_000 : 2_000_000,
      });
      this.accounts.push({ email, id, key: api_key });
    }
    this.office.storage.immediate = false;
  }

  /** One random event. */
  async step(): Promise<void> {
    const relay = this.#pick(this.relays);
    const request = this.requests.length > 0 ? this.#pick(this.requests) : null;
    const roll = this.#random();
    if (roll < 0.1) void this.#ask(relay);
    else if (roll < 0.4) relay.deliver("toMain");
    else if (roll < 0.7) relay.deliver("toRelay");
    else if (roll < 0.8) relay.flush();
    else if (roll < 0.9) request?.end?.();
    else if (roll < 0.92) request?.cancelSignal.abort();
    else if (roll < 0.96) this.#commit();
    else if (roll < 0.982) this.#loseCommit();
    else if (roll < 0.985) await this.#rotate();
    else if (roll < 0.986) this.#nextMinute();
    else if (roll < 0.99) this.office.admission.line.look(this.office.moment);
    else this.#leaveLine();
    await this.#continuations();
    this.queue.check();
    this.#check();
  }

  /** Lets everything come to its end. */
  async quiet(): Promise<void> {
    for (let round = 0; ; round += 1) {
      const isOver = this.requests.length === 0 && this.relays.every(({ idle }) => idle);
      if (isOver && this.office.journal.pending === 0) break;
      if (round === quietRoundsMax) throw new Error(`${this.requests.length} requests come to no end`);
      for (const relay of this.relays) {
        relay.flush();
        relay.deliver("toMain");
        relay.deliver("toRelay");
      }
      for (const request of [...this.requests]) request.end?.();
      this.#commit();
      await this.#continuations();
    }
  }

  /** A client leaves that waits for a place, which may be on its way to it. */
  #leaveLine(): void {
    const waiting = this.requests.filter(({ isInLine }) => isInLine);
    if (waiting.length > 0) this.#pick(waiting).cancelSignal.abort();
  }

  /** What this account's whole replies cost, by the clients' own view: at par price a token is a token. */
  readonly costs = new Map<number, number>();

  async #ask(relay: SimulatedRelay): Promise<void> {
    const account = this.#pick(this.accounts);
    const request: Request = {
      id: `req-${this.#next++}`,
      account,
      cancelSignal: new AbortController(),
      isInLine: false,
      end: null,
      fate: null,
      usage: output(1 + Math.floor(this.#random() * 900)),
    };
    this.requests.push(request);
    // One request in ten comes with a key that was rotated.
    const old = this.#random() < 0.1 && this.#void.size > 0;
    try {
      request.fate = await this.#live(relay, request, old ? this.#pick([...this.#void]) : account.key);
    } catch (thrown) {
      if (!(thrown instanceof StoreUnavailable)) this.wrong.push(`${request.id}: ${String(thrown)}`);
      request.fate = "unavailable";
    }
    this.fates[request.fate] += 1;
    this.requests.splice(this.requests.indexOf(request), 1);
  }

  async #live({ mainThread }: SimulatedRelay, request: Request, key: string): Promise<Fate> {
    const isVoid = this.#void.has(key);
    const principal = await mainThread.principal(key);
    if (principal !== null && isVoid) this.wrong.push(`${request.id} came with a void key and was let in`);
    if (principal === null) return "refused";
    const { account } = principal;
    const admitted = await mainThread.admit({
      ...principal,
      ask: {
        endpoint: "/v1/chat/completions",
        coderBilling: "calls",
        model: this.#models.get("core-3")!,
        outputTokensMax: 1_000,
      },
      inputTokens: this.#pick([0, 100, 3_000, 40_000]),
      requestId: request.id,
    });
    if (isRefusal(admitted)) return "refused";
    using hold = admitted;
    if (hold.ready !== null) {
      this.waited += 1;
      const leave = () => hold[Symbol.dispose]();
      if (request.cancelSignal.signal.aborted) leave();
      request.cancelSignal.signal.addEventListener("abort", leave);
      const refusal = await hold.ready;
      request.cancelSignal.signal.removeEventListener("abort", leave);
      if (request.cancelSignal.signal.aborted) return "left";
      if (refusal !== null) return "refused";
    }
    {
      const wanted = {
        account,
        member: "",
        own: undefined,
        weight: 1,
        priority: "standard" as const,
        modelId: "core-3",
        prompt: noBlocks,
        excluded: new Set<string>(),
        deadlineMs: undefined,
      };
      request.isInLine = true;
      const place = await mainThread.enter(wanted, request.cancelSignal.signal, (number, node) =>
        this.#slot(mainThread, number, node),
      );
      request.isInLine = false;
      if (isRefusal(place)) return request.cancelSignal.signal.aborted ? "left" : "refused";
      using _slot = place;
      await new Promise<void>((end) => {
        request.end = end;
        if (request.cancelSignal.signal.aborted) end();
        else request.cancelSignal.signal.addEventListener("abort", () => end());
      });
    }
    await hold.settle(request.usage, false, 0);
    this.costs.set(account, (this.costs.get(account) ?? 0) + request.usage.output);
    return "whole";
  }

  #slot(mainThread: MainThreadClient, place: number, nodeName: string): Slot {
    const running = (this.running.get(nodeName) ?? 0) + 1;
    this.running.set(nodeName, running);
    if (running > this.#slots[nodeName]!) this.wrong.push(`${running} requests at once on node ${nodeName}`);
    return {
      nodeName,
      alike: () => new Set([nodeName]),
      run: () => Promise.reject(new Error("not here")),
      [Symbol.dispose]: () => {
        this.running.set(nodeName, this.running.get(nodeName)! - 1);
        mainThread.done(place, null);
      },
    };
  }

  /** What must hold after every event. */
  #check(): void {
    const open = this.relays.reduce((sum, { session }) => sum + session.openRequests, 0);
    const { holds } = this.office.ledger.totals();
    if (holds > open) this.wrong.push(`${holds} holds with ${open} open requests`);
    const busy = this.queue.states().reduce((sum, state) => sum + state.busy, 0);
    const places = this.relays.reduce((sum, { session }) => sum + session.places, 0);
    if (busy + this.queue.length !== places)
      this.wrong.push(`${busy} busy and ${this.queue.length} waiting, ${places} known`);
    for (const { email, id } of this.accounts) {
      const account = this.office.ledger.ifLoaded(id);
      if (account !== null && this.office.ledger.spendable(account, this.office.now) < 0) {
        this.wrong.push(`${email} may spend less than nothing`);
      }
    }
  }

  #commit(): void {
    if (this.office.storage.waiting) this.office.storage.succeed();
    else this.office.journal.flush();
  }

  #loseCommit(): void {
    if (this.office.storage.waiting) this.office.storage.giveUp();
  }

  async #rotate(): Promise<void> {
    const account = this.#pick(this.accounts);
    const rotated = this.office.accounts.rotateKey(account.email, () => this.#void.add(account.key)); // from this moment on
    const commit = setInterval(() => this.#commit());
    account.key = (await rotated).api_key;
    clearInterval(commit);
  }

  #nextMinute(): void {
    this.office.now += minuteMs;
  }

  #pick<Item>(items: readonly Item[]): Item {
    return items[Math.floor(this.#random() * items.length)]!;
  }

  async #continuations(): Promise<void> {
    for (let turn = 0; turn < 12; turn += 1) await null;
  }
}
