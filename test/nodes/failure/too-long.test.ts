// What a client reads where its prompt, or that and its output budget, do not fit the node's context.
import { expect, test } from "bun:test";
import { messageOf } from "../../../src/core/refusals.ts";
import { tooLong } from "../../../src/nodes/failure/failure.ts";
import { askOf, firstPartyModel } from "../../fixtures/asks.ts";

const said = { promptTokens: 10, promptTokensMin: null, totalTokens: 4_106, contextTokens: 2_048 };

test("a prompt that fits beside a budget that does not is their sum, in the words of Anthropic's servers", () => {
  expect(messageOf(tooLong(askOf({ outputTokensMax: 4_096 }), said))).toBe(
    "input length and `max_tokens` exceed context limit: 10 + 4096 > 2048, decrease input length or `max_tokens` and try again",
  );
});

test("a budget that was not sent is no part of it", () => {
  const refusal = tooLong(askOf({ model: firstPartyModel }), { ...said, totalTokens: null });
  expect(messageOf(refusal)).toBe("prompt is too long: 2049 tokens > 2048 maximum");
});
