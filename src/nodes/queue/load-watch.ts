// Watches what a node's engine has to do while requests run there, and makes its number of slots of it. Requests never wait
// for this: it asks between them, and what it knows is at most a second old.
//
//   not in use --(a request begins)-> asked at once, then again while it is in use: soon where it is full, else each second
//   it tells no such numbers          -> the usual number of slots, and it is asked seldom
//   no answer several times in a row  -> no more than the usual number, until it tells it again
import type { Ms } from "../../core/types.ts";
import {
  autoSlotsIdleLooksMax,
  autoSlotsSilentLooksMax,
  ggufSlots,
  loadFullIntervalMs,
  loadIntervalMs,
  loadUntoldIntervalMs,
  nodeSlotsDefault,
} from "../../core/limits.ts";
import type { Engine } from "../engine.ts";
import { type EngineLoad, isLoad, type LoadAnswer } from "../engine-load.ts";
import { AutoSlots } from "./auto-slots.ts";

export type LoadLimits = Readonly<{ loadIntervalMs: Ms; loadFullIntervalMs: Ms; loadUntoldIntervalMs: Ms }>;
export const loadLimitsDefault: LoadLimits = { loadIntervalMs, loadFullIntervalMs, loadUntoldIntervalMs };

export type LoadWatchParts = Readonly<{
  limits: LoadLimits;
  /** Whether its slots are to follow its load. */
  isAuto(): boolean;
  ask(): Promise<LoadAnswer>;
  engine(): Engine;
  /** Requests of ours that it has. */
  busy(): number;
  /** The slots, or what others have there, may be other ones. */
  changed(): void;
}>;

export class LoadWatch {
  /** As it was told last; null where it is not known. */
  told: EngineLoad | null = null;
  readonly #parts: LoadWatchParts;
  /** Null where its engine does not tell its load. */
  #auto: AutoSlots | null;
  #fixed: number;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #asking = false;
  #silent = 0;
  #idle = 0;
  #closed = false;

  constructor(parts: LoadWatchParts) {
    this.#parts = parts;
    this.#auto = new AutoSlots(null);
    this.#fixed = nodeSlotsDefault;
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

  /** It is another engine, or says more of itself. */
  restart(): void {
    this.told = null;
    this.#auto = new AutoSlots(this.#parts.engine().requestsMax ?? null);
    this.#silent = 0;
    if (this.#timer !== null) this.#arm(0);
  }

  close(): void {
    this.#closed = true;
    this.#disarm();
  }

  async #look(): Promise<void> {
    const { isAuto, ask, busy, changed } = this.#parts;
    const engine = this.#parts.engine();
    this.#asking = true;
    const answer = await ask();
    this.#asking = false;
    if (this.#closed || !isAuto()) return;
    if (engine !== this.#parts.engine()) return this.#arm(0);
    this.#take(answer);
    changed();
    this.#idle = busy() > 0 ? 0 : this.#idle + 1;
    if (this.#idle < autoSlotsIdleLooksMax) this.#arm(this.#delayAfter(answer));
    else this.#rest();
  }

  #take(answer: LoadAnswer): void {
    const { engine, busy } = this.#parts;
    if (isLoad(answer)) {
      this.told = answer;
      this.#silent = 0;
      this.#auto ??= new AutoSlots(engine().requestsMax ?? null);
      return this.#auto.take(answer, busy());
    }
    this.#silent = answer === "silent" ? this.#silent + 1 : 0;
    if (answer === "silent" && this.#silent < autoSlotsSilentLooksMax) return;
    const usual = usualSlots(engine());
    if (this.#auto !== null) this.#fixed = this.told === null ? usual : Math.min(usual, this.slots);
    this.told = null;
    this.#auto = null;
  }

  #delayAfter(answer: LoadAnswer): Ms {
    const { limits, busy } = this.#parts;
    if (answer === "untold") return limits.loadUntoldIntervalMs;
    const isFull = isLoad(answer) && (busy() >= this.slots || answer.waiting > 0);
    return isFull ? limits.loadFullIntervalMs : limits.loadIntervalMs;
  }

  /** What others have there is not known from now on. */
  #rest(): void {
    this.told = null;
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

/** Programs for one person run few requests at once as they are installed. */
const small: ReadonlySet<Engine["kind"]> = new Set(["llama.cpp", "ollama", "lm-studio"]);

/** Slots of an engine that does not tell its load. */
export const usualSlots = ({ kind, requestsMax }: Engine): number =>
  requestsMax ?? (small.has(kind) ? ggufSlots : nodeSlotsDefault);
