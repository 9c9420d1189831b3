// A node that writes down what it was asked: each prompt, how often, and what it answered. What it says of tokens follows from
// the prompt, so that a charge can be recomputed.

export type CountingNode = Readonly<{ url: string; asked: Map<string, number>; most: number }> & Disposable;

export type CountingOptions = Readonly<{
  model: string;
  delayMs?: number;
  port?: number;
  /** The status of an answer to this prompt, which was asked for so often before; absent: 200. */
  statusOf?: (prompt: string, before: number) => number;
}>;

export const tokensOf = (prompt: string): Readonly<{ input: number; output: number }> => {
  const hash = Number(Bun.hash(prompt) & 0xffn);
  return { input: 10 + (hash % 50), output: 1 + (hash % 7) };
};

export function startCountingNode({
  model,
  delayMs = 0,
  port = 0,
  statusOf = () => 200,
}: CountingOptions): CountingNode {
  const asked = new Map<string, number>();
  let running = 0;
  let most = 0;
  const server = Bun.serve({
    port,
    idleTimeout: 255,
    async fetch(request) {
      const { pathname } = new URL(request.url);
      if (pathname === "/v1/models") return Response.json({ object: "list", data: [{ id: model, object: "model" }] });
      if (pathname !== "/v1/chat/completions") return new Response("no", { status: 404 });
      const body = (await request.json()) as { messages: { content: unknown }[] };
      const prompt = JSON.stringify(body.messages.at(-1)!.content);
      const before = asked.get(prompt) ?? 0;
      asked.set(prompt, before + 1);
      running += 1;
      most = Math.max(most, running);
      if (delayMs > 0) await Bun.sleep(delayMs);
      running -= 1;
      const status = statusOf(prompt, before);
      if (status !== 200) return Response.json({ error: { message: "planted" } }, { status });
      const { input, output } = tokensOf(prompt);
      const chunk = (choices: object[], usage: object | null = null): string =>
        `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", model, choices, usage })}\n\n`;
      const text = `answer to ${prompt}`;
      const usage = { prompt_tokens: input, completion_tokens: output, total_tokens: input + output };
      return new Response(
        chunk([{ index: 0, delta: { role: "assistant", content: text }, finish_reason: null }]) +
          chunk([{ index: 0, delta: {}, finish_reason: "stop" }]) +
          chunk([], usage) +
          "data: [DONE]\n\n",
        { headers: { "content-type": "text/event-stream" } },
      );
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}/v1`,
    asked,
    get most() {
      return most;
    },
    [Symbol.dispose]: () => void server.stop(true),
  };
}
