// A reply that lists what many inputs came to: it is made while it goes out, and its room is given back.
import { expect, test } from "bun:test";
import { ByteBudget } from "../../../src/core/byte-budget.ts";
import type { Usage } from "../../../src/core/types.ts";
import { embeddings } from "../../../src/dialects/embeddings/embeddings.ts";
import type { Encoder } from "../../../src/dialects/dialect.ts";
import { InputsOutlet, inputsReplyStepBytes } from "../../../src/http/outlets/inputs-outlet.ts";
import { askOf } from "../../fixtures/asks.ts";

const usage: Usage = { inputFresh: 7, inputCached: 0, output: 0, reasoning: 0 };
const end = { reason: "stop", stopSequence: null, usage } as const;
const vectorLength = 16 * 1024;
const ask = askOf();

function budget(): ByteBudget {
  const places = 1_000;
  const bytes = places * inputsReplyStepBytes;
  return new ByteBudget({ places, bytes, accountPlaces: places / 2, accountBytes: bytes / 2 });
}

/** An outlet that was given so many vectors, in the reverse order; `given`: how many parts its reply has come to. */
function outletOf(vectors: number, room: ByteBudget) {
  const made = embeddings.unpack(ask, ask).writer.encoder({ requestId: "req_1", createdSeconds: 1 }, "whole");
  const state = { given: 0 };
  const encoder: Encoder = {
    keepAlive: () => "",
    failure: () => "",
    piece: (piece) => made.piece(piece),
    end: (last) => made.end(last),
    *parts(last) {
      const parts = made.parts!(last);
      for (let next = parts.next(); next.done !== true; next = parts.next()) {
        state.given++;
        yield next.value;
      }
    },
  };
  const outlet = new InputsOutlet(
    { ask, requestId: "req_1", dialect: embeddings, encoder },
    new AbortController().signal,
    room,
    1,
  );
  for (let index = vectors - 1; index >= 0; index--) {
    outlet.piece({ kind: "input", index, json: `[${"1,".repeat(vectorLength / 2)}${index}]` });
  }
  void outlet.end(end);
  return { outlet, state };
}

type Reply = { data: { index: number; embedding: number[] }[]; usage: object };

test.each([0, 1, 100])("%d vectors are all there, in their order, and their room is given back", async (vectors) => {
  const room = budget();
  const { outlet } = outletOf(vectors, room);
  const reply = (await (await outlet.response).json()) as Reply;
  outlet.close();
  expect(reply.data.map(({ index, embedding }) => [index, embedding.at(-1)])).toEqual(
    Array.from({ length: vectors }, (_, index) => [index, index]),
  );
  expect(reply.usage).toEqual({ prompt_tokens: 7, total_tokens: 7 });
  expect(room.places).toBe(0);
});

test("a large one is made as its client reads it, and given up when the client leaves", async () => {
  const room = budget();
  const { outlet, state } = outletOf(200, room);
  const reader = (await outlet.response).body!.getReader();
  outlet.close();
  const { value } = await reader.read();
  expect(value!.length).toBeGreaterThanOrEqual(inputsReplyStepBytes);
  expect(state.given).toBeLessThan(80); // two parts a vector
  expect(room.bytes).toBeGreaterThan(200 * vectorLength);
  await reader.cancel();
  expect(room.places).toBe(0);
});
