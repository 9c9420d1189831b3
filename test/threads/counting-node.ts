// A node that counts its concurrent requests. It answers at once, or holds its answers until it is told.
type Held = Readonly<{ end(): void }>;

const head = 'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"word"},"finish_reason":null}]}\n\n';
const tailOf = (inputTokens: number): string =>
  [
    'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n',
    `data: {"choices":[],"usage":{"prompt_tokens":${inputTokens},"completion_tokens":5,"total_tokens":${inputTokens + 5}}}\n\n`,
    "data: [DONE]\n\n",
  ].join("");

export class CountingNode {
  answer: "at once" | "when told" = "at once";
  /** What it says that it read of each request. */
  inputTokens = 10;
  running = 0;
  mostAtOnce = 0;
  served = 0;
  readonly #held = new Set<Held>();
  readonly #server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    fetch: (request) => this.#reply(request),
  });

  get url(): string {
    return `http://127.0.0.1:${this.#server.port}/v1`;
  }

  /** Ends all answers that are held. */
  finish(): void {
    for (const held of [...this.#held]) held.end();
  }

  stop(): void {
    void this.#server.stop(true);
  }

  async #reply(request: Request): Promise<Response> {
    if (request.method !== "POST") return Response.json({ object: "list", data: [{ id: "m", object: "model" }] });
    this.running += 1;
    this.served += 1;
    this.mostAtOnce = Math.max(this.mostAtOnce, this.running);
    let over = false;
    const leave = (): void => {
      if (!over) this.running -= 1;
      over = true;
    };
    try {
      await request.text();
    } catch (reason) {
      leave(); // it was given up before all of it was here
      throw reason;
    }
    const headers = { "content-type": "text/event-stream" };
    if (this.answer === "at once") {
      await Bun.sleep(1); // long enough for another request to be seen beside it
      leave(); // the node is free when its answer is out, which is not seen before
      return new Response(head + tailOf(this.inputTokens), { headers });
    }
    const body = new ReadableStream<string>({
      start: (controller) => {
        controller.enqueue(head);
        const held: Held = {
          end: () => {
            this.#held.delete(held);
            leave();
            if (request.signal.aborted) return;
            controller.enqueue(tailOf(this.inputTokens));
            controller.close();
          },
        };
        this.#held.add(held);
        request.signal.addEventListener("abort", () => {
          this.#held.delete(held);
          leave();
        });
      },
    });
    return new Response(body, { headers });
  }
}
