// An inference node that has a limit, as engines have: it runs so many requests at once, the others wait inside it, first come
// first served. Each step of its batch takes longer the more requests are in it, and a prompt takes a part of the steps. What
// runs and what waits it tells at /metrics, in vLLM's words.
//
//   bun bench/engine-like-node.ts --runs 8 --step-ms 20 --prompt-ms 60
import { readFlags } from "./flags.ts";
import { bun, type Running, startProcess } from "./process.ts";

export type EngineLike = Readonly<{
  /** Requests that it runs at once. */
  runs: number;
  /** A step of its batch, with one token for each request in it, and what each request adds. */
  stepMs: number;
  requestMs: number;
  /** What a prompt takes before its first token, while the others' steps wait. */
  promptMs: number;
  tokens: number;
}>;

export const usualEngine: EngineLike = { runs: 48, stepMs: 15, requestMs: 0.25, promptMs: 12, tokens: 60 };

export async function startEngineLikeNode(settings: EngineLike): Promise<Running & Readonly<{ port: number }>> {
  const words = Object.entries(settings).flatMap(([name, value]) => [
    `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`,
    `${value}`,
  ]);
  const running = await startProcess({
    role: "node",
    command: [bun, `${import.meta.dir}/engine-like-node.ts`, ...words],
    ready: /listening on http:\/\/127\.0\.0\.1:(\d+)/,
  });
  return { ...running, port: Number(running.ready[1]) };
}

type Request = { left: number; send: (text: string) => void; end: () => void };

const event = (body: object): string =>
  `data: ${JSON.stringify({ id: "r", object: "chat.completion.chunk", ...body })}\n\n`;
const token = event({ choices: [{ index: 0, delta: { content: "token " }, finish_reason: null }] });

class Engine {
  readonly #settings: EngineLike;
  readonly #running = new Set<Request>();
  readonly #waiting = new Set<Request>();
  #stepping = false;

  constructor(settings: EngineLike) {
    this.#settings = settings;
  }

  take(request: Request): void {
    this.#waiting.add(request);
    if (!this.#stepping) void this.#step();
  }

  leave(request: Request): void {
    this.#waiting.delete(request);
    this.#running.delete(request);
  }

  get metrics(): string {
    const labels = '{engine="0",model_name="bench"}';
    return `vllm:num_requests_running${labels} ${this.#running.size}.0
vllm:num_requests_waiting${labels} ${this.#waiting.size}.0
vllm:kv_cache_usage_perc${labels} ${(this.#running.size / this.#settings.runs) * 0.5}\n`;
  }

  async #step(): Promise<void> {
    const { runs, stepMs, requestMs, promptMs, tokens } = this.#settings;
    this.#stepping = true;
    let due = performance.now();
    while (this.#running.size + this.#waiting.size > 0) {
      // A step takes prompts in as vLLM's budget of tokens does: a few at a time.
      let prompts = 0;
      for (const request of this.#waiting) {
        if (this.#running.size >= runs || prompts >= 4) break;
        this.#waiting.delete(request);
        this.#running.add(request);
        prompts += 1;
      }
      due += stepMs + requestMs * this.#running.size + promptMs * prompts;
      await Bun.sleep(Math.max(0, due - performance.now()));
      for (const request of this.#running) {
        request.send(token);
        request.left -= 1;
        if (request.left > 0) continue;
        this.#running.delete(request);
        const usage = { prompt_tokens: 100, completion_tokens: tokens, total_tokens: 100 + tokens };
        request.send(event({ choices: [{ index: 0, delta: {}, finish_reason: "length" }] }));
        request.send(`${event({ choices: [], usage })}data: [DONE]\n\n`);
        request.end();
      }
    }
    this.#stepping = false;
  }
}

if (import.meta.main) {
  const { port, ...settings } = readFlags({ port: 0, ...usualEngine });
  const engine = new Engine(settings);
  const encoder = new TextEncoder();
  const models = { object: "list", data: [{ id: "bench", object: "model", owned_by: "vllm", max_model_len: 262_144 }] };
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port,
    idleTimeout: 0,
    routes: {
      "/v1/models": () => Response.json(models),
      "/metrics": () => new Response(engine.metrics),
      "/v1/chat/completions": async (request) => {
        await request.text();
        let taken: Request | null = null;
        const stream = new ReadableStream({
          start(controller) {
            taken = {
              left: settings.tokens,
              send: (text) => controller.enqueue(encoder.encode(text)),
              end: () => controller.close(),
            };
            engine.take(taken);
          },
          cancel() {
            if (taken !== null) engine.leave(taken);
          },
        });
        return new Response(stream, { headers: { "content-type": "text/event-stream" } });
      },
    },
    fetch: () => new Response("not found", { status: 404 }),
  });
  console.log(`engine-like node listening on http://127.0.0.1:${server.port}`);
}
