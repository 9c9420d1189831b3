// Checking answers in a process of its own: the verdicts, and that no schema can hold anybody else up.
import { afterAll, afterEach, describe, expect, test } from "bun:test";
import { schemaFault } from "../../../src/dialects/request/schema-limits.ts";
import {
  AnswerChecker,
  type AnswerCheckerOptions,
  type CheckResult,
} from "../../../src/tools/format/answer-checker.ts";
import { type Hostile, hostileSchemas } from "../../fixtures/hostile-schemas.ts";
import { longForm } from "../../fixtures/optional.ts";

const timeLimit = 120_000;
/** Compares each with each: minutes. */
const catastrophic = JSON.stringify({ uniqueItems: true });
const catastrophe = JSON.stringify(Array.from({ length: 60_000 }, (_, index) => ({ index })));
/** Only the engine itself can run it, and nothing can stop the engine in there. */
const endless = JSON.stringify({ pattern: "^(a|aa|a*)+\\1$" });
const endlessly = JSON.stringify(`${"a".repeat(100)}!`);

// A server's socket keeps its event loop waiting; without anything of the kind the test runner turns it as fast as it can.
const listening = setInterval(() => {}, 1_000);
afterAll(() => clearInterval(listening));

const logged: string[] = [];
const open: AnswerChecker[] = [];
const checkerOf = (options: Partial<AnswerCheckerOptions> = {}): AnswerChecker => {
  const checker = new AnswerChecker({ log: (_level, event) => void logged.push(event), ...options });
  open.push(checker);
  return checker;
};
afterEach(async () => {
  for (const checker of open.splice(0)) await checker.close();
  logged.length = 0;
});

describe("verdicts", () => {
  const checker = new AnswerChecker({ log: () => {} });
  afterAll(() => checker.close());
  const verdict = async (schema: object | null, answer: string | null): Promise<CheckResult> =>
    checker.check({ schema: schema === null ? null : JSON.stringify(schema), text: answer }, 1);
  const book = {
    type: "object",
    properties: { title: { type: "string" }, year: { type: "integer" } },
    required: ["title", "year"],
    additionalProperties: false,
  };
  const tree = { type: "object", properties: { next: { $ref: "#" } }, required: ["value"] };

  test.each([
    [null, '{"a":[1]}', null],
    [null, " 3\n", null],
    [null, "", "it is not valid JSON: JSON Parse error: Unexpected EOF"],
    [null, "```json\n{}\n```", "it is not valid JSON: JSON Parse error: Unrecognized token '`'"],
    [book, '{"title":"Dune","year":1965}', null],
    [book, '{"title":"Dune"}', "the value must have required property 'year'"],
    [book, '{"title":"Dune","year":"1965"}', "/year must be integer"],
    [book, '{"title":"Dune","year":1965,"a":1}', 'the value must not have the property "a"'],
    [{ enum: ["a", "b"] }, '"c"', 'the value must be one of ["a","b"]'],
    [tree, '{"value":1,"next":{"value":2}}', null],
    [tree, '{"value":1,"next":{}}', "/next must have required property 'value'"],
    [{ pattern: "^(?!b)[a-z]+$" }, '"b"', 'the value must match pattern "^(?!b)[a-z]+$"'],
    [{ pattern: "^(?P<year>\\d+)$" }, '"not for JavaScript"', null],
    [{ format: "email" }, '"annotations are not rules"', null],
    [{ "x-vendor": true, deprecated: true }, "1", null],
    [{ $schema: "http://json-schema.org/draft-07/schema#", items: [{ type: "string" }] }, "[1]", "/0 must be string"],
    [{ items: [{ type: "string" }] }, "[1]", "/0 must be string"],
    [{ prefixItems: [{ type: "string" }] }, "[1]", "/0 must be string"],
    [{ definitions: { a: { type: "string" } }, items: { $ref: "#/definitions/a" } }, "[1]", "/0 must be string"],
    [{ minimum: 1, exclusiveMinimum: true }, "1", "the value must be > 1"],
    [{ $schema: "http://json-schema.org/draft-04/schema#", maximum: 1, exclusiveMaximum: true }, "0", null],
    [{ properties: { a: { maximum: 1, exclusiveMaximum: false } } }, '{"a":1}', null],
    [{ properties: { a: { anyOf: [{ type: "string" }, { type: "null" }] } } }, '{"a":null}', null],
  ])(
    "%j and %s: %p",
    async (schema, answer, reason) => {
      expect(await verdict(schema, answer)).toEqual(
        reason === null ? { verdict: "fits" } : { verdict: "misfit", reason },
      );
    },
    timeLimit,
  );

  test.each([
    [{ type: "banana" }, "/type must be one of"],
    [{ properties: [] }, "/properties must be object"],
    [{ $ref: "#/nowhere" }, "can't resolve reference #/nowhere"],
    [{ minLength: -1 }, "/minLength must be >= 0"],
  ])(
    "%j is no schema",
    async (schema, reason) => {
      expect(await verdict(schema, null)).toEqual({ verdict: "unusable", reason: expect.stringContaining(reason) });
      expect(await verdict(schema, "1")).toMatchObject({ verdict: "unusable" });
    },
    timeLimit,
  );

  test(
    "one schema's $id means nothing for the next, and none replaces the drafts' own",
    async () => {
      const $id = "https://a.example/x";
      expect(await verdict({ $id, type: "string" }, '"x"')).toEqual({ verdict: "fits" });
      expect(await verdict({ $id, type: "number" }, '"x"')).toMatchObject({ verdict: "misfit" });
      expect(await verdict({ $ref: $id }, null)).toMatchObject({ verdict: "unusable" });
      const draft = "https://json-schema.org/draft/2020-12/schema";
      expect(await verdict({ $id: draft, type: "string" }, '"x"')).toEqual({ verdict: "fits" });
      expect(await verdict({ type: "banana" }, null)).toMatchObject({ verdict: "unusable" });
    },
    timeLimit,
  );
});

describe("the checking process", () => {
  test(
    "a check without end is ended, and the process lives on",
    async () => {
      const checker = checkerOf();
      const results = await Promise.all([
        checker.check({ schema: catastrophic, text: catastrophe }, 1),
        checker.check({ schema: '{"type":"number"}', text: "1" }, 1),
        checker.check({ schema: null, text: "no" }, 2),
      ]);
      expect(results.map(({ verdict }) => verdict)).toEqual(["slow", "fits", "misfit"]);
      expect(logged).toEqual(["a check of structured output took too long"]);
    },
    timeLimit,
  );

  test(
    "patterns that backtrack for ever are no matter, except those that only the engine runs",
    async () => {
      const checker = checkerOf();
      const pattern = JSON.stringify({ pattern: "^(a|aa|a*)+$" });
      expect(await checker.check({ schema: pattern, text: endlessly }, 1)).toMatchObject({ verdict: "misfit" });
      expect(await checker.check({ schema: endless, text: '"aa"' }, 1)).toEqual({ verdict: "fits" });
      expect(await checker.check({ schema: endless, text: '"ab"' }, 1)).toMatchObject({ verdict: "misfit" });
      if (process.platform !== "linux") return console.log("that the system ends the process is tried on Linux alone");
      expect(await checker.check({ schema: endless, text: endlessly }, 1)).toEqual({ verdict: "slow" });
      expect(await checker.check({ schema: endless, text: '"aa"' }, 1)).toEqual({ verdict: "fits" });
    },
    timeLimit,
  );

  test(
    "a crowd whose checks take long holds another up by a short try of each",
    async () => {
      const checker = checkerOf();
      const order: string[] = [];
      const crowd = Array.from({ length: longForm ? 12 : 6 }, async (_, account) => {
        const orders = {
          schema: account % 2 === 0 ? catastrophic : endless,
          text: account % 2 === 0 ? catastrophe : endlessly,
        };
        await Promise.all([1, 2].map(() => checker.check(orders, account + 2)));
        order.push("crowd");
      });
      for (let checks = 0; checks < 3; checks++) {
        expect(await checker.check({ schema: '{"type":"number"}', text: `${checks}` }, 1)).toEqual({ verdict: "fits" });
      }
      expect(order).toEqual([]); // nobody of them has had both
      await checker.close();
      await Promise.all(crowd);
    },
    timeLimit,
  );

  test(
    "an account whose checks take long has so much of the processor in a minute",
    async () => {
      let now = 0;
      const send = 'process.on("message", ({ text }) => process.send({ verdict: text, usedMs: 4_000 }));';
      const command = [process.execPath, "-e", `${send} process.send("ready");`];
      const checker = checkerOf({ command, clock: { monotonic: () => now } });
      const ask = (text: string) => checker.check({ schema: null, text }, 1);
      expect(await ask("slow")).toEqual({ verdict: "slow" }); // tried at both places
      const verdicts = await Promise.all([1, 2, 3].map(() => ask("fits")));
      expect(verdicts.map(({ verdict }) => verdict)).toEqual(["fits", "slow", "slow"]);
      expect(await checker.check({ schema: null, text: "fits" }, 2)).toEqual({ verdict: "fits" });
      expect(logged.at(-1)).toBe("an account's schemas are too expensive to check for now");
      now += 60_000;
      expect(await ask("fits")).toEqual({ verdict: "fits" });
    },
    timeLimit,
  );

  test(
    "a process that does not answer is ended",
    async () => {
      const command = [process.execPath, "-e", 'process.on("message", () => {}); process.send("ready");'];
      const checker = checkerOf({ command, silenceMs: 1 });
      expect(await checker.check({ schema: null, text: "1" }, 1)).toEqual({ verdict: "slow" });
    },
    timeLimit,
  );

  test(
    "a process that ends by itself costs the check that it was at",
    async () => {
      const command = [process.execPath, "-e", 'process.on("message", () => process.exit(9)); process.send("ready");'];
      const checker = checkerOf({ command });
      expect(await checker.check({ schema: null, text: "1" }, 1)).toEqual({ verdict: "slow" });
      expect(logged).toContain("the process that checks structured output ended");
    },
    timeLimit,
  );

  test(
    "a process that cannot start is a failure of ours",
    async () => {
      const checker = checkerOf({ command: [process.execPath, "-e", "process.exit(1)"] });
      expect(await checker.check({ schema: null, text: "1" }, 1)).toEqual({ verdict: "failed" });
      expect(await checker.check({ schema: null, text: "1" }, 1)).toEqual({ verdict: "failed" });
    },
    timeLimit,
  );

  test(
    "it sees nothing of the environment, and goes when it was idle",
    async () => {
      const say =
        'process.on("message", () => process.send({ verdict: "misfit", reason: Object.keys(process.env).join(), usedMs: 1 }));';
      const checker = checkerOf({ command: [process.execPath, "-e", `${say} process.send("ready");`], idleMs: 1 });
      const result = await checker.check({ schema: null, text: "1" }, 1);
      expect(result).toEqual({ verdict: "misfit", reason: "" });
      await Bun.sleep(20);
      expect(await checker.check({ schema: null, text: "1" }, 1)).toEqual(result); // a new one
      expect(logged).toEqual([]);
    },
    timeLimit,
  );

  test(
    "closing answers what waits",
    async () => {
      const checker = checkerOf();
      const waiting = [1, 2].map((account) => checker.check({ schema: catastrophic, text: catastrophe }, account));
      await checker.close();
      expect(await Promise.all(waiting)).toEqual([{ verdict: "failed" }, { verdict: "failed" }]);
    },
    timeLimit,
  );
});

describe("hostile schemas", () => {
  const count = longForm ? 250 : 40;
  test(`${count} of them: none stops the event loop for 50 ms, and every one gets a verdict`, async () => {
    const checker = checkerOf();
    const verdicts = new Set<string>();
    /** All that a schema costs the main thread, in processor time: no stop of the event loop can be longer. */
    const costMs = async ({ schema, answer }: Hostile, account: number): Promise<number> => {
      const before = process.threadCpuUsage();
      const isTaken = schemaFault(schema) === null;
      const order = { schema: isTaken ? JSON.stringify(schema) : null, text: answer };
      verdicts.add(isTaken ? (await checker.check(order, account)).verdict : "refused");
      const { user, system } = process.threadCpuUsage(before);
      return (user + system) / 1000;
    };
    for (const [index, hostile] of hostileSchemas(count).entries()) {
      let leastMs = Number.POSITIVE_INFINITY;
      // garbage of other tests may be collected meanwhile, but not each time
      for (let tries = 0; tries < 3 && leastMs >= 50; tries++) {
        leastMs = Math.min(leastMs, await costMs(hostile, index % 7));
      }
      expect(leastMs, hostile.name).toBeLessThan(50);
    }
    expect([...verdicts]).toContain("slow"); // the patterns did what they are there for
    if (longForm) expect([...verdicts]).toContain("refused"); // fewer do not have every kind
    expect([...verdicts]).not.toContain("failed");
  }, 900_000);
});
