// What is expected of a model by what its answers have shown: never less than what an engine adds to every request alike, and
// what was unusual is forgotten.
import { expect, test } from "bun:test";
import type { Ask, Usage } from "../../src/core/types.ts";
import { answersRemembered, ModelHabits, templateTokensUnknown } from "../../src/tools/model-habits.ts";
import { askOf, preparedOf } from "../fixtures/asks.ts";
import { randomOf, seedOfRun } from "../fixtures/random.ts";

const ask = askOf({});
const used = (inputFresh: number, output = 1, inputCached = 0): Usage => ({
  inputFresh,
  inputCached,
  output,
  reasoning: 0,
});

test("of a model that has answered nothing, a long template is expected, and never more than its context", () => {
  const habits = new ModelHabits();
  expect(habits.expected(ask, 100)).toEqual({ input: 100 + templateTokensUnknown, output: 0 });
  const { contextTokens } = ask.model;
  expect(habits.expected(ask, contextTokens - 1)).toEqual({ input: contextTokens, output: 0 });
});

const seed = seedOfRun();
test(`one answer is enough where an engine adds the same to each request (TOLLGATE_SEED=${seed})`, () => {
  const random = randomOf(seed);
  for (let world = 0; world < 200; world += 1) {
    const habits = new ModelHabits();
    const template = Math.floor(random() * templateTokensUnknown);
    const tokensPerByte = random();
    for (let at = 0; at < 100; at += 1) {
      const bytes = 1 + Math.floor(random() * 50_000);
      const read = template + Math.ceil(tokensPerByte * bytes);
      if (at > 0)
        expect(habits.expected(ask, bytes).input).toBeGreaterThanOrEqual(Math.min(read, ask.model.contextTokens));
      habits.saw(ask, bytes, used(read));
    }
  }
});

test("the shortest prompt bounds the template, cached or not", () => {
  const habits = new ModelHabits();
  habits.saw(ask, 40_000, used(2_000, 1, 1_000));
  expect(habits.expected(ask, 100).input).toBe(3_100);
  habits.saw(ask, 100, used(120));
  expect(habits.expected(ask, 100).input).toBe(220);
  habits.saw(ask, 100, used(0)); // nobody counted it
  expect(habits.expected(ask, 100).input).toBe(220);
});

test("a template that became longer, on some node, is expected from the first answer that shows it", () => {
  const habits = new ModelHabits();
  habits.saw(ask, 100, used(120));
  habits.saw(ask, 100, used(9_000));
  expect(habits.expected(ask, 100).input).toBe(9_000);
  for (let answers = 0; answers < 6 * answersRemembered; answers += 1) habits.saw(ask, 100, used(120));
  expect(habits.expected(ask, 100).input).toBeLessThan(300);
});

test("long texts are expected to be as dense as those before, not thinner than code, and short ones may be anything", () => {
  const habits = new ModelHabits();
  habits.saw(ask, 100, used(20));
  expect(habits.expected(ask, 20_000).input).toBe(20_020);
  habits.saw(ask, 20_000, used(5_000));
  expect(habits.expected(ask, 20_000).input).toBe(10_020);
  expect(habits.expected(ask, 2_000).input).toBe(2_020);
  expect(habits.expected(ask, 2_100).input).toBe(2_068);
  const { contextTokens } = ask.model;
  expect(habits.expected(ask, contextTokens).input).toBe(contextTokens); // a file that nobody has read
  habits.saw(ask, 20_000, used(18_000));
  expect(habits.expected(ask, 20_000).input).toBe(18_020);
  for (let answers = 0; answers < 6 * answersRemembered; answers += 1) habits.saw(ask, 20_000, used(5_000));
  expect(habits.expected(ask, 20_000).input).toBe(10_020);
});

test("what images come to is expected of no other request", () => {
  const habits = new ModelHabits();
  habits.saw(ask, 100, used(120));
  const image = { kind: "image", url: "data:image/png;base64,AAAA", detail: null } as const;
  const shown: Ask = { ...ask, turns: [{ role: "user", content: [image] }] };
  for (const seen of [shown, { ...ask, prepared: preparedOf({ images: 1 }) }]) {
    habits.saw(seen, 100, used(90_000));
    habits.saw(seen, 20_000, used(100));
    expect(habits.expected(ask, 100).input).toBe(200);
    expect(habits.expected(ask, 20_000).input).toBe(20_100);
  }
});

test("the longest answer is expected again, for a while", () => {
  const habits = new ModelHabits();
  habits.saw(ask, 100, used(120, 30_000));
  expect(habits.expected(ask, 100).output).toBe(30_000);
  for (let answers = 0; answers < answersRemembered; answers += 1) habits.saw(ask, 100, used(120, 500));
  expect(habits.expected(ask, 100).output).toBeLessThan(15_000);
});

test("each dialect and model has its own", () => {
  const habits = new ModelHabits();
  habits.saw(ask, 100, used(120));
  const others: Ask[] = [
    { ...ask, endpoint: "/v1/completions" },
    { ...ask, model: { ...ask.model, id: "other" } },
  ];
  for (const other of others) expect(habits.expected(other, 100).input).toBe(100 + templateTokensUnknown);
});

test("inputs are expected to come to all that is believed of them", () => {
  const inputs = { kind: "vectors", count: 2, tokens: null, format: "float", dimensions: null } as const;
  const vectors: Ask = { ...ask, bodyBytes: 1_000, inputs };
  expect(new ModelHabits().expected(vectors, 500)).toEqual({ input: 2 * 1_000 + 2 * 4, output: 0 });
});
