// The tracer of a running server: the configured one, also after a reload.
import { version } from "../../package.json" with { type: "json" };
import { systemClock } from "../core/clock.ts";
import type { Config } from "../config/config.ts";
import type { Log } from "../core/log.ts";
import type { Tracer } from "./tracer.ts";

export class Tracing {
  readonly #log: Log;
  #telemetry: Config["telemetry"] = null;
  #tracer: Tracer | null = null;
  /** Earlier tracers send what they have left. */
  #closing: Promise<unknown> = Promise.resolve();

  constructor(log: Log) {
    this.#log = log;
  }

  /** Null where tracing is off. */
  get tracer(): Tracer | null {
    return this.#tracer;
  }

  /** Traces as configured from now on. */
  async follow({ telemetry }: Pick<Config, "telemetry">): Promise<void> {
    if (JSON.stringify(telemetry) === JSON.stringify(this.#telemetry)) return;
    const before = this.#tracer;
    this.#tracer = telemetry === null ? null : await this.#open(telemetry);
    this.#telemetry = telemetry;
    this.#closing = Promise.all([this.#closing, before?.close()]);
  }

  /** Sends what is left, for a few seconds at most. */
  async close(): Promise<void> {
    await Promise.all([this.#closing, this.#tracer?.close()]);
  }

  /** Loads the packages only where traces are wanted. */
  async #open(telemetry: NonNullable<Config["telemetry"]>): Promise<Tracer> {
    const { openTracer } = await import("./tracer.ts");
    return openTracer({ telemetry, version, clock: systemClock, log: this.#log });
  }
}
