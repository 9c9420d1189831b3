// The numbers that say how urgent a request is, and the engines that are sent them.
import { expect, test } from "bun:test";
import { priorities } from "../../src/core/priority.ts";
import { type Engine, unknownEngine } from "../../src/nodes/engine.ts";
import { enginePriority } from "../../src/nodes/engine-priority.ts";

const numbers = (engine: Partial<Engine>, configured?: boolean) =>
  priorities.map((priority) => enginePriority({ ...unknownEngine, ...engine }, configured, priority));
const nothing = [undefined, undefined, undefined];
const lowFirst = [-100, 0, 100];
const highFirst = [100, 0, -100];

test("vLLM, whose low numbers are urgent, gets them where its row says that it takes them", () => {
  expect(numbers({ kind: "vllm" })).toEqual(nothing);
  expect(numbers({ kind: "vllm" }, false)).toEqual(nothing);
  expect(numbers({ kind: "vllm" }, true)).toEqual(lowFirst);
  expect(numbers({ kind: "unknown" }, true)).toEqual(lowFirst);
});

test("SGLang gets them where it reports that it takes them, in the direction that it reports", () => {
  expect(numbers({ kind: "sglang" })).toEqual(nothing);
  expect(numbers({ kind: "sglang", urgentFirst: "high" })).toEqual(highFirst);
  expect(numbers({ kind: "sglang", urgentFirst: "low" })).toEqual(lowFirst);
  expect(numbers({ kind: "sglang", urgentFirst: "low" }, false)).toEqual(nothing);
  expect(numbers({ kind: "sglang" }, true)).toEqual(highFirst);
});

test("engines without priorities get none, whatever their row says", () => {
  for (const kind of ["llama.cpp", "ollama", "tensorrt-llm", "sglang-router"] as const)
    expect(numbers({ kind }, true)).toEqual(nothing);
});
