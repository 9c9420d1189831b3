// Stands between the gateway and an engine: passes all bytes on and keeps them, so that what the gateway told its client
// can be held against what the engine said, and can keep an answer from ending.
import { createConnection, createServer, type Server, type Socket } from "node:net";
import { eventually } from "../../fixtures/eventually.ts";

/** One connection, as long as it was used: requests follow each other in it. */
type Link = { gateway: Socket; engine: Socket; passed: number; tail: string };
/** What the gateway sent and the engine answered; `held`: the end of the answer was not passed on. */
export type Exchange = { request: string; answer: string; held: boolean; closedAtMs: number | null };
export type EngineUsage = Readonly<{ input: number; output: number; cached: number }>;

export class Tap implements Disposable {
  readonly exchanges: Exchange[] = [];
  /**
   * Bytes of each answer that are passed on; what follows is swallowed, so that the answer never ends. Where this is
   * finite, so is the event that would end a shorter answer: no dialect and no engine has a way to keep all from ending.
   */
  holdAfterBytes = Infinity;
  readonly #server: Server;
  readonly #links = new Set<Link>();

  private constructor(readonly enginePort: number) {
    this.#server = createServer((gateway) => this.#join(gateway));
  }

  static async before(enginePort: number): Promise<Tap> {
    const tap = new Tap(enginePort);
    await new Promise<void>((resolve) => tap.#server.listen(0, "127.0.0.1", resolve));
    return tap;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as { port: number }).port}/v1`;
  }

  #join(gateway: Socket): void {
    const engine = createConnection(this.enginePort, "127.0.0.1");
    const link: Link = { gateway, engine, passed: 0, tail: "" };
    let exchange: Exchange | null = null;
    this.#links.add(link);
    gateway.setNoDelay(true);
    engine.setNoDelay(true);
    gateway.on("data", (bytes) => {
      if (exchange === null || exchange.answer !== "") {
        exchange = { request: "", answer: "", held: false, closedAtMs: null };
        this.exchanges.push(exchange);
        link.passed = 0;
        link.tail = "";
      }
      exchange.request += bytes.toString();
      engine.write(bytes);
    });
    engine.on("data", (bytes: Buffer) => {
      const left =
        exchange?.held === true ? 0 : Math.min(this.holdAfterBytes - link.passed, this.#beforeEnd(link, bytes));
      link.passed += bytes.length;
      if (exchange !== null) {
        exchange.answer += bytes.toString();
        exchange.held ||= left < bytes.length;
      }
      if (left > 0) gateway.write(left < bytes.length ? bytes.subarray(0, left) : bytes);
    });
    const part = (from: Socket, to: Socket): void => {
      from.on("end", () => to.end());
      from.on("error", () => to.resetAndDestroy());
      from.on("close", () => {
        if (exchange !== null) exchange.closedAtMs ??= performance.now();
        to.destroy();
        this.#links.delete(link);
      });
    };
    part(gateway, engine);
    part(engine, gateway);
  }

  /** Bytes of a read before the event's word that ends the answer, which two reads may bring. */
  #beforeEnd(link: Link, bytes: Buffer): number {
    if (this.holdAfterBytes === Infinity) return Infinity;
    const text = link.tail + bytes.toString("latin1");
    const at = text.search(/"finish_reason":\s?"/);
    const before = link.tail.length;
    link.tail = text.slice(-'"finish_reason": '.length);
    return at < 0 ? Infinity : Math.max(0, at - before);
  }

  /** Exchanges of generations: not those of the gateway's looks and counts. */
  get generations(): Exchange[] {
    return this.exchanges.filter(({ request }) => request.startsWith("POST /v1/chat/completions HTTP"));
  }

  /** Resolves when so many generations, of those behind the first `from`, are held back. */
  async holds(from: number, count: number): Promise<void> {
    const held = (): number => this.generations.slice(from).filter((exchange) => exchange.held).length;
    await eventually("the engine answers", async () => held() >= count, 120_000);
  }

  /** Usage that the engine reported in an answer; null where it reported none. */
  static usageOf({ answer }: Exchange): EngineUsage | null {
    const found = [...bodyOf(answer).matchAll(/"usage":\s*(\{(?:[^{}]|\{[^{}]*\})*\})/g)].at(-1)?.[1];
    if (found === undefined) return null;
    const usage = JSON.parse(found) as Record<string, number> & { prompt_tokens_details?: { cached_tokens?: number } };
    return {
      input: usage["prompt_tokens"] ?? 0,
      output: usage["completion_tokens"] ?? 0,
      cached: usage.prompt_tokens_details?.cached_tokens ?? 0,
    };
  }

  [Symbol.dispose](): void {
    this.#server.close();
    for (const { gateway, engine } of this.#links) {
      gateway.destroy();
      engine.destroy();
    }
  }
}

/** What follows the head, without the frames of chunks. */
export const bodyOf = (message: string): string =>
  message
    .slice(message.indexOf("\r\n\r\n") + 2)
    .replace(/\r\n(?:[0-9a-f]+\r\n)?/g, "")
    .trim();
