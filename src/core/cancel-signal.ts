// Tells the code that works on an answer that its client left; a cheap AbortSignal. A real one with its listeners is a
// twentieth of a short request's cost, most of it in garbage collection. Code that passes it to the runtime (fetch, a
// child process) gets a real signal from it, which few requests need.

/** Called once. */
export type CancelListener = (() => void) | Readonly<{ handleEvent(): void }>;

export class CancelSignal {
  #aborted = false;
  #reason: unknown;
  #listeners: CancelListener[] = [];
  #controller: AbortController | null = null;

  get aborted(): boolean {
    return this.#aborted;
  }

  /** A Refusal where the gateway ends the answer; undefined where the client left. */
  get reason(): unknown {
    return this.#reason;
  }

  /** Calls every listener; does nothing the second time. */
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

  addEventListener(_type: "abort", listener: CancelListener, _options?: Readonly<{ once: true }>): void {
    if (!this.#aborted) this.#listeners.push(listener);
  }

  removeEventListener(_type: "abort", listener: CancelListener): void {
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

/** For functions that only listen. */
export type AnyCancelSignal = AbortSignal | CancelSignal;

export const signalOf = (cancelSignal: AnyCancelSignal): AbortSignal =>
  cancelSignal instanceof CancelSignal ? cancelSignal.signal : cancelSignal;
