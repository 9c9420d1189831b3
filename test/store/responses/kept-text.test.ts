// The one text in which responses go to their Worker: what comes out is what went in.
import { expect, test } from "bun:test";
import fc from "fast-check";
import { packKept, unpackKept } from "../../../src/store/responses/kept-text.ts";

const text = fc.string({ unit: "binary" });
const response = fc.record({
  account: fc.nat(),
  id: text,
  previousId: fc.option(text),
  input: text,
  output: text,
  settings: text,
});

test("any responses come out as they went in, in their order", () => {
  fc.assert(
    fc.property(fc.array(response), (responses) => {
      expect(unpackKept(packKept(responses))).toEqual(responses);
    }),
  );
});

test("also with lines, pairs of surrogates and halves of them", () => {
  const responses = ["", "\n\n", "[\n]", "\u{1f600}", "\ud83d", "\ude00"].map((text, account) => {
    return { account, id: text, previousId: text, input: text, output: `${text}1`, settings: `\n${text}` };
  });
  expect(unpackKept(packKept(responses))).toEqual(responses);
});
