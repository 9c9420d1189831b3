// kill -9 among requests for embeddings and reranking, small and large: what a client saw to its end is charged once, with
// the tokens that it was told, and nothing stays reserved.
import { expect, test } from "bun:test";
import { largeBodyMinBytes } from "../../src/core/limits.ts";
import { eventually } from "../fixtures/eventually.ts";
import { GatewayProcess } from "../fixtures/gateway-process.ts";
import { InputsNode, inputsConfig } from "../fixtures/inputs-node.ts";
import { randomOf } from "../fixtures/random.ts";

const rounds = Number(process.env["TOLLGATE_CRASH_ROUNDS"] ?? 3);
const seed = Number(process.env["TOLLGATE_CRASH_SEED"] ?? crypto.getRandomValues(new Uint32Array(1))[0]);
const creditTokens = 100_000_000;

test(
  `after each of ${rounds} kills every vector and order that was seen is charged once (TOLLGATE_CRASH_SEED=${seed})`,
  async () => {
    const random = randomOf(seed);
    const below = (limit: number): number => Math.floor(random() * limit);
    using node = new InputsNode();
    const price = "price = 5"; // a token costs a balance token
    await using gateway = await GatewayProcess.start({
      config: inputsConfig(
        node,
        [
          ["bge-tiny", "embedding", price],
          ["rerank-tiny", "rerank", price],
        ],
        "[limits]\nembedding_requests_per_minute = 1000000",
      ),
    });
    const accounts = await Promise.all(Array.from({ length: 4 }, () => gateway.account(creditTokens)));
    const told = new Map<string, number>();
    let cut = 0;

    const client = async (key: string, stopped: AbortSignal): Promise<void> => {
      while (!stopped.aborted) {
        const texts = Array.from({ length: 1 + below(60) }, () => "x".repeat(1 + below(50)));
        const more = below(8) === 0 ? { padding: "x".repeat(largeBodyMinBytes) } : {};
        const isVectors = random() < 0.5;
        const body = isVectors
          ? { model: "bge-tiny", input: texts, ...more }
          : { model: "rerank-tiny", query: "q", documents: texts, ...more };
        try {
          const reply = await fetch(gateway.url + (isVectors ? "/v1/embeddings" : "/v1/rerank"), {
            method: "POST",
            headers: { authorization: `Bearer ${key}` },
            body: JSON.stringify(body),
          });
          const { usage, ...rest } = (await reply.json()) as { usage?: { total_tokens: number } };
          if (reply.status === 200) told.set(reply.headers.get("x-request-id")!, usage!.total_tokens);
          else if (reply.status !== 429) throw new Error(`answered ${reply.status}: ${JSON.stringify(rest)}`);
        } catch (error) {
          if (String(error).includes("answered")) throw error;
          cut++;
          return; // the gateway was killed
        }
      }
    };

    for (let round = 0; round < rounds; round++) {
      const stop = new AbortController();
      const load = accounts.flatMap(({ api_key }) => Array.from({ length: 6 }, () => client(api_key, stop.signal)));
      const before = told.size;
      await eventually("answers come", async () => told.size > before + 20);
      await Bun.sleep(below(300));
      await gateway.kill("SIGKILL");
      stop.abort();
      await Promise.all(load);
      await gateway.restart();
    }

    let seen = 0;
    for (const { email } of accounts) {
      const rows = await gateway.usage(email, 1_000_000);
      const { reserved, credit, allowance } = await gateway.show(email);
      expect(reserved).toBe(0);
      expect(new Set(rows.map(({ request_id }) => request_id)).size).toBe(rows.length);
      let total = 0;
      for (const { request_id: id, input, billed_tokens, endpoint, estimated } of rows) {
        expect([id, billed_tokens, estimated]).toEqual([id, input, false]);
        expect(["/v1/embeddings", "/v1/rerank"]).toContain(endpoint);
        total += billed_tokens;
        const wanted = told.get(id);
        if (wanted === undefined) continue; // charged, and its client did not see the end
        expect([id, input]).toEqual([id, wanted]);
        seen++;
      }
      // A run over midnight (UTC) has had two allowances.
      if (rows.every(({ time }) => time.startsWith(allowance.day))) {
        expect(allowance.granted - allowance.left + creditTokens - credit).toBe(total);
      }
    }
    expect(seen).toBe(told.size); // no charge is lost
    expect(told.size).toBeGreaterThan(rounds * 5);
    expect(cut).toBeGreaterThan(0);
    console.log(`crash rig: ${JSON.stringify({ rounds, seed, complete: told.size, cut })}`);
  },
  60_000 + rounds * 20_000,
);
