// The simulated engines behind HTTP, in the manner of vLLM: streamed chats with cached tokens in their usage, and metrics. One
// process is all nodes; they take time instead of processor time.
//
//   bun bench/routing/nodes.ts --speeds 1,1,1,1
//   GET /down/0, /up/0, /cold/0 and /lateness of the last port that it prints
import { readFlags } from "../flags.ts";
import { freePort } from "../free-port.ts";
import { Engine, enginesOfSpeed, Job } from "./engine.ts";
import { answerBegins, answerEnds, answerTo, GrowingText, type Message, writtenOut } from "./text.ts";
import { usualModel } from "./traces.ts";

/** Text comes in pieces of this many tokens after the first one, as with vLLM's `--stream-interval`. */
const pieceTokens = 24;
const characters = 4;

type Body = Readonly<{
  messages: readonly Readonly<{
    role: Message["role"];
    content: string | readonly Readonly<{ text: string }>[];
  }>[];
  max_tokens?: number;
  max_completion_tokens?: number;
  stream?: boolean;
  cache_salt?: string;
}>;

/** How late steps ended: more than a few ms, and the machine was too busy for true figures. */
const lateness = { sumMs: 0, steps: 0 };

class Node {
  readonly port = freePort();
  #engine: Engine;
  #server: ReturnType<typeof Bun.serve> | null = null;
  #isStepping = false;
  readonly #open = new Set<() => void>();

  constructor(speed: number) {
    this.#engine = new Engine(enginesOfSpeed(speed));
  }

  up(): void {
    this.#server ??= Bun.serve({
      hostname: "127.0.0.1",
      port: this.port,
      idleTimeout: 0,
      maxRequestBodySize: 64 << 20,
      routes: {
        "/v1/chat/completions": async (request) => this.#answer((await request.json()) as Body),
        "/v1/models": () =>
          Response.json({
            object: "list",
            data: [{ id: usualModel, object: "model", owned_by: "vllm", root: usualModel, max_model_len: 262_144 }],
          }),
        "/metrics": () => new Response(this.#metrics(), { headers: { "content-type": "text/plain; version=0.0.4" } }),
        "/version": () => Response.json({ version: "0.32.0" }),
        "/health": () => new Response(""),
        "/get_model_info": () => Response.json({ model_path: usualModel }),
      },
      fetch: () => Response.json({ detail: "Not Found" }, { status: 404 }),
    });
  }

  down(): void {
    for (const cut of [...this.#open]) cut();
    void this.#server?.stop(true);
    this.#server = null;
    this.#engine = new Engine(this.#engine.settings);
    this.#isStepping = false;
  }

  cold(): void {
    this.#engine.loseCache();
  }

  #metrics(): string {
    const { running, waiting, cacheUse, settings } = this.#engine;
    const labels = `{engine="0",model_name="${usualModel}"}`;
    return `vllm:num_requests_running${labels} ${running.length}.0
vllm:num_requests_waiting${labels} ${waiting.length}.0
vllm:kv_cache_usage_perc${labels} ${cacheUse}
vllm:cache_config_info{block_size="16",num_gpu_blocks="${settings.blocks}"} 1.0
`;
  }

  #step(engine: Engine, dueMs: number): void {
    const ms = engine.plan();
    this.#isStepping = ms !== null;
    if (ms === null) return;
    const endMs = Math.max(dueMs, performance.now() - 50) + ms;
    setTimeout(
      () => {
        if (engine !== this.#engine) return;
        lateness.sumMs += Math.max(0, performance.now() - endMs);
        lateness.steps++;
        engine.apply();
        this.#step(engine, endMs);
      },
      Math.max(0, endMs - performance.now()),
    );
  }

  #answer(body: Body): Response {
    const messages = body.messages.map(({ role, content }) => ({
      role,
      content: typeof content === "string" ? content : content.map(({ text }) => text).join(""),
    }));
    const outputTokens = body.max_tokens ?? body.max_completion_tokens ?? 256;
    const text = new GrowingText(body.cache_salt ?? "");
    for (const message of messages) text.add(writtenOut(message));
    const { tokens } = text.add(answerBegins);
    const answer = answerTo(messages.at(-1)!.content, outputTokens);
    const prompt = { tokens, blocks: text.add(answer + answerEnds).blocks };
    const head = { id: crypto.randomUUID(), object: "chat.completion.chunk", created: 1, model: usualModel };
    const encoder = new TextEncoder();
    let leave = (): void => {};
    const stream = new ReadableStream<Uint8Array>({
      start: (controller) => {
        const put = (line: string): void => controller.enqueue(encoder.encode(`data: ${line}\n\n`));
        const chunk = (content: string, finish: string | null = null): void =>
          put(JSON.stringify({ ...head, choices: [{ index: 0, delta: { content }, finish_reason: finish }] }));
        let sent = 0;
        const piece = (): void => {
          chunk(answer.slice(characters * sent, characters * job.written));
          sent = job.written;
        };
        const engine = this.#engine;
        const job: Job = new Job(
          prompt,
          outputTokens,
          piece,
          () => void (job.written - sent >= pieceTokens && piece()),
          () => {
            this.#open.delete(cut);
            piece();
            chunk("", "length");
            const usage = {
              prompt_tokens: tokens,
              completion_tokens: outputTokens,
              total_tokens: tokens + outputTokens,
              prompt_tokens_details: { cached_tokens: job.cached },
            };
            put(JSON.stringify({ ...head, choices: [], usage }));
            put("[DONE]");
            controller.close();
          },
        );
        leave = () => {
          this.#open.delete(cut);
          engine.leave(job);
        };
        const cut = (): void => {
          leave();
          controller.error(new Error("the node went down"));
        };
        this.#open.add(cut);
        engine.take(job);
        if (!this.#isStepping) this.#step(engine, performance.now());
      },
      cancel: () => leave(),
    });
    return new Response(stream, { headers: { "content-type": "text/event-stream" } });
  }
}

if (import.meta.main) {
  const { speeds } = readFlags({ speeds: "1" });
  const nodes = speeds.split(",").map((speed) => new Node(Number(speed)));
  for (const node of nodes) node.up();
  const control = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    routes: {
      "/lateness": () => Response.json(lateness.sumMs / Math.max(1, lateness.steps)),
      "/:what/:node": ({ params }) => {
        const node = nodes[Number(params.node)]!;
        if (params.what === "down") node.down();
        else if (params.what === "up") node.up();
        else node.cold();
        return new Response("");
      },
    },
  });
  console.log(`nodes listening on ${[...nodes, control].map(({ port }) => port).join(" ")}`);
}
