// That nobody waits for an answer any more, as those hear of it who work on the answer. It is what an AbortSignal is, but
// an ordinary object: a signal with its listeners is a twentieth of what a short request costs, most of it in collecting
// the garbage. Whoever hands it to the runtime (fetch, a child process) gets a real signal, which few requests need.

/** Called once. */
export type DepartureListener = (() => void) | Readonly<{ handleEvent(): void }>;

export class Departure {
  #aborted = false;
  #reason: unknown;
  #listeners: DepartureListener[] = [];
  #controller: AbortController | null = null;

  get aborted(): boolean {
    return this.#aborted;
  }

  /** A Refusal where the gateway ends the answer; undefined where the client left. */
  get reason(): unknown {
    return this.#reason;
  }

  /** Tells everybody who listens; a second time does nothing. */
  abort(reason?: unknown): void {
    if (this.#aborted) return;
    this.#aborted = true;
    this.#reason = reason;
    const listeners = this.#listeners;
    this.#listeners = [];
    for (const listener of listeners) {
      if (typeof listener === "function") listener();
      else listener.handleEvent();
    }
    this.#controller?.abort(reason);
  }

  addEventListener(_type: "abort", listener: DepartureListener, _options?: Readonly<{ once: true }>): void {
    if (!this.#aborted) this.#listeners.push(listener);
  }

  removeEventListener(_type: "abort", listener: DepartureListener): void {
    const at = this.#listeners.indexOf(listener);
    if (at >= 0) this.#listeners.splice(at, 1);
  }

  get signal(): AbortSignal {
    if (this.#controller === null) {
      this.#controller = new AbortController();
      if (this.#aborted) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }
}

/** What those take who only need to hear of it. */
export type Gone = AbortSignal | Departure;

export const signalOf = (gone: Gone): AbortSignal => (gone instanceof Departure ? gone.signal : gone);
