// Watches the load of a node's engine while requests run there, and derives its number of slots. Requests never wait for
// this: it asks between them, and its numbers are at most a second old.
//
//   not in use --(a request begins)-> asked at once, then again while it is in use: soon where it is full, else each second
//   it reports no such numbers        -> the usual number of slots, and it is asked seldom
//   no slots are configured           -> asked once it is known to be an engine that reports them; until then the usual number
//   no answer several times in a row  -> no more than the usual number, until it answers again
import type { NodeConfig } from "../../config/config.ts";
import type { Ms } from "../../core/types.ts";
import { ggufSlots, nodeSlotsDefault } from "../../core/limits.ts";
import type { Engine } from "../engine.ts";
import { type EngineLoad, isLoad, type LoadAnswer } from "../engine-load.ts";
import { AutoSlots } from "./auto-slots.ts";

/** Each look at the load is a line in some engines' access logs. */
const loadIntervalMs = 1_000;
const loadFullIntervalMs = 250;
const loadUnreportedIntervalMs = 60_000;
/** Looks without a request before they end. */
const autoSlotsIdleLooksMax = 5;
const autoSlotsSilentLooksMax = 3;

export type LoadLimits = Readonly<{ loadIntervalMs: Ms; loadFullIntervalMs: Ms; loadUnreportedIntervalMs: Ms }>;
export const loadLimitsDefault: LoadLimits = { loadIntervalMs, loadFullIntervalMs, loadUnreportedIntervalMs };

export type LoadWatchParts = Readonly<{
  limits: LoadLimits;
  /** The configured slots. A number: the engine is not asked. */
  wanted(): NodeConfig["slots"];
  ask(): Promise<LoadAnswer>;
  engine(): Engine;
  /** Our requests there. */
  busy(): number;
  /** Free slots that only bulk waits for, which leaves them to others. */
  kept(): number;
  /** How long it is expected to read their prompts. */
  unreadMs(): Ms;
  /** The slots or the others' requests may have changed. */
  changed(): void;
}>;

export class LoadWatch {
  /** The last report; null where none is current. */
  latest: EngineLoad | null = null;
  readonly #parts: LoadWatchParts;
  /** Null where the engine does not report its load. */
  #auto: AutoSlots | null;
  #fixed: number;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #asking = false;
  #silent = 0;
  #idle = 0;
  #closed = false;

  constructor(parts: LoadWatchParts) {
    this.#parts = parts;
    this.#auto = parts.wanted() === "auto" ? new AutoSlots(null) : null;
    this.#fixed = nodeSlotsDefault;
  }

  /** Whether the slots follow the load. */
  get follows(): boolean {
    return this.#auto !== null;
  }

  /** Whether to ask for the load at all. */
  get isAsked(): boolean {
    const wanted = this.#parts.wanted();
    return wanted === "auto" || (wanted === null && reportsLoad.has(this.#parts.engine().kind));
  }

  get slots(): number {
    return this.#auto?.slots ?? this.#fixed;
  }

  get elsewhere(): number {
    return this.#auto?.elsewhere ?? 0;
  }

  /** A request begins there. */
  wake(): void {
    this.#idle = 0;
    if (this.#timer === null && !this.#asking) this.#arm(0);
  }

  /** The engine changed, or reports more about itself. */
  restart(): void {
    const { wanted, engine } = this.#parts;
    this.latest = null;
    this.#auto = wanted() === "auto" ? new AutoSlots(engine().requestsMax ?? null) : null;
    this.#fixed = usualSlots(engine(), wanted());
    this.#silent = 0;
    if (this.#timer !== null) this.#arm(0);
    else if (wanted() === null && this.isAsked) this.wake();
  }

  close(): void {
    this.#closed = true;
    this.#disarm();
  }

  async #look(): Promise<void> {
    const { ask, busy, changed } = this.#parts;
    const engine = this.#parts.engine();
    this.#asking = true;
    const answer = await ask();
    this.#asking = false;
    if (this.#closed || !this.isAsked) return;
    if (engine !== this.#parts.engine()) return this.#arm(0);
    this.#take(answer);
    changed();
    this.#idle = busy() > 0 ? 0 : this.#idle + 1;
    if (this.#idle < autoSlotsIdleLooksMax) this.#arm(this.#delayAfter(answer));
    else this.#rest();
  }

  #take(answer: LoadAnswer): void {
    const { engine, busy, unreadMs, kept, wanted } = this.#parts;
    if (isLoad(answer)) {
      this.latest = answer;
      this.#silent = 0;
      this.#auto ??= new AutoSlots(engine().requestsMax ?? null);
      return this.#auto.take(answer, busy(), unreadMs(), kept());
    }
    this.#silent = answer === "silent" ? this.#silent + 1 : 0;
    if (answer === "silent" && this.#silent < autoSlotsSilentLooksMax) return;
    const usual = usualSlots(engine(), wanted());
    if (this.#auto !== null) this.#fixed = this.latest === null ? usual : Math.min(usual, this.slots);
    this.latest = null;
    this.#auto = null;
  }

  #delayAfter(answer: LoadAnswer): Ms {
    const { limits, busy, kept } = this.#parts;
    if (answer === "unreported") return limits.loadUnreportedIntervalMs;
    const isFull = isLoad(answer) && (busy() + kept() >= this.slots || answer.waiting > 0);
    return isFull ? limits.loadFullIntervalMs : limits.loadIntervalMs;
  }

  /** From now on the others' requests are unknown. */
  #rest(): void {
    this.latest = null;
    this.#auto?.forgetOthers();
    this.#parts.changed();
  }

  #arm(delayMs: Ms): void {
    this.#disarm();
    this.#timer = setTimeout(() => {
      this.#timer = null;
      void this.#look();
    }, delayMs);
  }

  #disarm(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }
}

/** Engines whose numbers `engine-load` can read. */
const reportsLoad: ReadonlySet<Engine["kind"]> = new Set(["vllm", "sglang", "llama.cpp"]);

/** Programs for one person run few requests at once by default. */
const small: ReadonlySet<Engine["kind"]> = new Set(["llama.cpp", "ollama", "lm-studio"]);

/** Slots where the engine does not report its load, or where a number is configured. */
export function usualSlots({ kind, requestsMax }: Engine, wanted: NodeConfig["slots"]): number {
  const isSmall = wanted === "auto" && small.has(kind);
  const usual = typeof wanted === "number" ? wanted : (requestsMax ?? (isSmall ? ggufSlots : nodeSlotsDefault));
  // An engine that runs one request ends it for another.
  return requestsMax === 1 ? Math.min(1, usual) : usual;
}
