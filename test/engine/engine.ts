// Starts a real inference engine with a tiny model, as a self-hoster has behind the gateway.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { linesOf } from "../fixtures/lines.ts";
import { missing } from "../fixtures/optional.ts";

/** The interpreter that has the llama.cpp server. */
export const llamaPython = process.env["TOLLGATE_ENGINE_PYTHON"] ?? join(import.meta.dir, ".venv/bin/python");
/** The tiny chat model, in GGUF form. */
export const model =
  process.env["TOLLGATE_TINY_MODEL"] ?? join(import.meta.dir, "../../../shared/tiny-model/tiny-chat.gguf");

/** For describe.skipIf; prints the reason. */
export const engineMissing =
  missing(
    "an inference engine",
    existsSync(llamaPython),
    "make a virtual environment in test/engine/.venv with requirements.txt, or name its interpreter in TOLLGATE_ENGINE_PYTHON",
  ) || missing("the tiny model", existsSync(model), "name a small GGUF chat model in TOLLGATE_TINY_MODEL", false);

/** The command that runs it on a port of somebody else's choice until SIGTERM. */
export const engineCommand = (slots: number, port: string): string[] => [
  llamaPython,
  join(import.meta.dir, "serve.py"),
  model,
  String(slots),
  port,
];

type Slot = { id: number; is_processing: boolean };

export class Engine implements AsyncDisposable {
  readonly url: string;
  readonly #process: Bun.Subprocess<"pipe", "pipe", "ignore">;

  private constructor(process: Bun.Subprocess<"pipe", "pipe", "ignore">, url: string) {
    this.#process = process;
    this.url = url;
  }

  /** Loads the model; `slots` requests run at once. */
  static async start(slots: number): Promise<Engine> {
    const child = Bun.spawn([llamaPython, join(import.meta.dir, "serve.py"), model, String(slots)], {
      stdin: "pipe",
      stdout: "pipe",
      stderr: "ignore",
    });
    for await (const line of linesOf(child.stdout)) {
      const url = /^listening (http:\S+)/.exec(line)?.[1];
      if (url !== undefined) return new Engine(child, url);
    }
    throw new Error(`the engine ended with ${await child.exited}`);
  }

  /** Requests that the engine is working on. */
  async busySlots(): Promise<number> {
    const slots = (await (await fetch(`${this.url}/slots`)).json()) as Slot[];
    return slots.filter((slot) => slot.is_processing).length;
  }

  /** A `logit_bias` against every way to end an answer: the tiny model keeps talking. */
  async endlessBias(): Promise<Record<string, number>> {
    const bias: Record<string, number> = {};
    for (const content of ["<|im_end|>", "<|endoftext|>"]) {
      const body = JSON.stringify({ content, parse_special: true });
      const reply = await fetch(`${this.url}/tokenize`, { method: "POST", body });
      for (const token of ((await reply.json()) as { tokens: number[] }).tokens) bias[String(token)] = -100;
    }
    return bias;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    void this.#process.stdin.end();
    this.#process.kill();
    await this.#process.exited;
  }
}
