// A large answer is read in turns, so that nobody else waits for it.
import { expect, test } from "bun:test";
import { CancelSignal } from "../../../src/core/cancel-signal.ts";
import type { NodeClient } from "../../../src/nodes/client/client.ts";
import type { Exchange, ExchangeHandler } from "../../../src/nodes/client/exchange.ts";
import { askForInputs, inputsAnswerTurnBytes } from "../../../src/nodes/inputs/inputs-exchange.ts";
import { askOf } from "../../fixtures/asks.ts";

const count = 40;
const item = (index: number): string => `{"index":${index},"embedding":[${"1,".repeat(30_000)}1]}`;
const items = Array.from({ length: count }, (_, index) => item(index)).join(",");
const answer = Buffer.from(`{"data":[${items}],"usage":{"prompt_tokens":${count}}}`);
const readBytes = 64 * 1024;

test("after so many bytes the node waits until others had their turn", async () => {
  let handler!: ExchangeHandler;
  const calls: string[] = [];
  const exchange: Exchange = {
    pause: () => void calls.push("pause"),
    resume: () => void calls.push("resume"),
    abort: () => {},
    release: () => {},
  };
  const send = (_: unknown, given: ExchangeHandler): Exchange => {
    handler = given;
    return exchange;
  };
  const inputs = { kind: "vectors", count, tokens: null, format: "float", dimensions: null } as const;
  const asked = askForInputs({
    ask: { ...askOf({ outputTokensMax: 0, bodyBytes: 4_000 }), inputs },
    request: [],
    client: { send } as unknown as NodeClient,
    limits: { firstPieceMs: 60_000, stallMs: 60_000 } as never,
    cancelSignal: new CancelSignal(),
    sink: { piece: () => {}, flush: () => null },
    began: () => {},
  });
  handler.head(200, {} as never);
  let unpaused = 0;
  for (let at = 0; at < answer.length; at += readBytes) {
    const end = Math.min(answer.length, at + readBytes);
    handler.body(answer, at, end);
    handler.readEnd();
    unpaused += end - at;
    if (calls.at(-1) !== "pause") continue;
    expect(unpaused).toBeLessThanOrEqual(inputsAnswerTurnBytes + readBytes);
    unpaused = 0;
    await new Promise((resolve) => setImmediate(resolve));
    expect(calls.at(-1)).toBe("resume");
  }
  handler.end();
  expect((await asked).ending).toMatchObject({ kind: "end", usage: { inputFresh: count } });
  expect(calls.filter((call) => call === "pause").length).toBe(Math.floor(answer.length / inputsAnswerTurnBytes));
});
