// Reads what turn-meter.ts measures in a gateway.
import { existsSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export class TurnMeter {
  readonly #file = join(tmpdir(), `bench-turns-${process.pid}`);
  readonly flags = ["--preload", join(import.meta.dir, "turn-meter.ts")];
  readonly environment = { TOLLGATE_BENCH_TURNS: this.#file };

  /** Milliseconds of CPU time of the longest turn since the last call. */
  async longest(pid: number): Promise<number> {
    process.kill(pid, "SIGUSR2");
    while (!existsSync(this.#file)) await Bun.sleep(5);
    await Bun.sleep(5); // written whole
    const longest = Number(readFileSync(this.#file, "utf8"));
    rmSync(this.#file);
    return longest;
  }
}
