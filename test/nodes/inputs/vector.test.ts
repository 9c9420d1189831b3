// A vector is read out of an answer's item without parsing its numbers, and nothing passes that is none.
import { describe, expect, test } from "bun:test";
import { vectorOf } from "../../../src/nodes/inputs/vector.ts";
import { base64Of } from "../../fixtures/inputs-node.ts";
import { randomOf } from "../../fixtures/random.ts";

const item = (embedding: string): string => `{"object":"embedding","index":3,"embedding":${embedding}}`;

describe("a list of numbers", () => {
  test.each(["[1]", "[0,-0,0.5,-1.25e-7,3E+9,12e3]", "[ 1 ,\n2 ]", "[-0.0]"])("%s passes as it is", (list) => {
    const { length } = JSON.parse(list) as number[];
    expect(vectorOf(item(list), "float")).toEqual({ index: 3, dimensions: length, json: list });
  });

  test.each([
    ...["[]", "[1,]", "[,1]", "[1 2]", "[01]", "[1.]", "[.5]", "[+1]", "[1e]", "[1e+]", "[--1]", "[1-2]", "[NaN]"],
    ...["[null]", '["1"]', "[[1]]", "[1", "1", "null", "{}", "[1e5.5]", "[-]", "[0x1]", "[1,2]]"],
  ])("%s is none", (list) => {
    expect(vectorOf(item(list), "float")).toBeNull();
  });

  test("any other text is one exactly where JSON says so", () => {
    const random = randomOf(7);
    const characters = "0123456789.,-+eE [ ";
    for (let round = 0; round < 20_000; round++) {
      const inner = Array.from(
        { length: 1 + random() * 8 },
        () => characters[Math.floor(random() * characters.length)],
      );
      const list = `[${inner.join("")}]`;
      let parsed: unknown = null;
      try {
        parsed = JSON.parse(list);
      } catch {
        // none
      }
      const isFloat = (each: unknown): boolean => typeof each === "number" && Number.isFinite(Math.fround(each));
      const isVector = Array.isArray(parsed) && parsed.length > 0 && parsed.every(isFloat);
      expect([list, vectorOf(item(list), "float")?.dimensions ?? null]).toEqual([
        list,
        isVector ? (parsed as unknown[]).length : null,
      ]);
    }
  });
});

describe("the other form", () => {
  const vector = Float32Array.from([0.1, -2.5, 3e-9, 1]);
  const base64 = `"${base64Of(vector)}"`;

  test("base64 becomes the same floats", () => {
    const read = vectorOf(item(base64), "float")!;
    expect([read.dimensions, JSON.parse(read.json)]).toEqual([4, [...vector]]);
  });

  test("numbers become base64 of the same floats", () => {
    expect(vectorOf(item(JSON.stringify([...vector])), "base64")).toEqual({ index: 3, dimensions: 4, json: base64 });
  });

  test("base64 passes as it is", () => {
    expect(vectorOf(item(base64), "base64")).toEqual({ index: 3, dimensions: 4, json: base64 });
  });

  test.each(['""', '"AAAA"', '"AAA"', '"AA=A"', '"AAAAAA=="x', '"AAAAAA\\u003d="'])("%s is none", (text) => {
    expect(vectorOf(item(text), "base64")).toBeNull();
  });
});

describe.each(["float", "base64"] as const)("asked for as %s", (format) => {
  const dimensionsOf = (embedding: string) => vectorOf(item(embedding), format)?.dimensions ?? null;

  test("numbers that 32 bits do not hold are none", () => {
    const zeros = "0".repeat(38);
    const held = ["[3.4028234663852886e38]", "[1,-3.4e+38 ,2]", `[3${zeros}]`, `[0.${zeros}${zeros}1]`, "[9e-999]"];
    const beyond = ["[1, -3.5e38]", "[1e999,1]", "[1E+39]", `[4${zeros}]`, `[1,4${zeros}.5]`, `[-1${zeros}e1]`];
    expect(held.map(dimensionsOf)).toEqual([1, 3, 1, 1, 1]);
    expect(beyond.map(dimensionsOf)).toEqual(beyond.map(() => null));
  });

  test("floats that are not finite are none", () => {
    const base64 = (...floats: number[]) => dimensionsOf(`"${base64Of(Float32Array.from(floats))}"`);
    expect(base64(1, 3.4028234663852886e38, -1e-45, 0)).toBe(4);
    for (const number of [Number.NaN, Infinity, -Infinity]) expect(base64(1, number, 2)).toBeNull();
  });
});

test("members may stand in any order, with others between", () => {
  expect(vectorOf('{"embedding" : [1,2], "object":"embedding","x":{"embedding":[9]},"index":0}', "float")).toEqual({
    index: 0,
    dimensions: 2,
    json: "[1,2]",
  });
});

test.each(['{"index":0}', '{"embedding":[1]}', '{"embedding":[1],"index":"0"}', '{"x":"embedding"}', "{}"])(
  "%s has no vector",
  (json) => expect(vectorOf(json, "float")).toBeNull(),
);
