// Where benchmarks put their processes.
import { afterEach, expect, test } from "bun:test";
import { coreOf, placed, placementLine, setPlacement } from "../../bench/placement.ts";

afterEach(() => setPlacement("own core"));

test("with free placement nothing is pinned, and the result says so", () => {
  setPlacement("free");
  expect(["proxy", "node", "client"].map((role) => coreOf(role as "proxy"))).toEqual([null, null, null]);
  expect(placed("proxy", ["true"])).toEqual(["true"]);
  expect(placementLine()).toBe("processes not pinned");
});

test("a placement that there is not is an error", () => {
  expect(() => setPlacement("somewhere")).toThrow('--placement is "own core" or "free", not "somewhere"');
});
