// Something that fails again and again while its cause lasts: the log says once that it began, and once that it is over.
import type { Log } from "../core/log.ts";

export class Outage {
  #isOn = false;
  readonly #log: Log;
  readonly #begun: string;
  readonly #over: string;

  constructor(log: Log, begun: string, over: string) {
    this.#log = log;
    this.#begun = begun;
    this.#over = over;
  }

  failed(error: Error): void {
    if (this.#isOn) return;
    this.#isOn = true;
    this.#log("error", this.#begun, { reason: error.message });
  }

  worked(): void {
    if (!this.#isOn) return;
    this.#isOn = false;
    this.#log("info", this.#over);
  }
}
