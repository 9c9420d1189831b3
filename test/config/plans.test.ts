// [[plans]] of a configuration: what they are read as, and what is refused with its line.
import { describe, expect, test } from "bun:test";
import { readConfig } from "../../src/config/config.ts";
import { amountMax } from "../../src/core/limits.ts";

const read = (toml: string) => readConfig("gate.toml", toml, {}, {});
const plan = (rows: string) => read(`[[plans]]\n${rows}`).plans[0];

describe("a plan", () => {
  test("has nothing that it does not name, but 120 requests a minute and every model", () => {
    expect(plan('id = "team"')).toEqual({
      id: "team",
      as: "team",
      name: "Team",
      tokensPerDay: 0,
      coderCallsPerWindow: 0,
      searchesPerDay: 0,
      requestsPerMinute: 120,
      models: null,
      unlimited: false,
    });
  });

  test("is as its row says", () => {
    const rows = `id = "a"\nname = "Für alle"\ntokens_per_day = 7\nrequests_per_minute = 3\nsearches_per_day = 2\ncoder_calls = 1
      weight = 3
      models = ["x"]`;
    expect(plan(rows)).toMatchObject({
      name: "Für alle",
      tokensPerDay: 7,
      requestsPerMinute: 3,
      searchesPerDay: 2,
      coderCallsPerWindow: 1,
      weight: 3,
      models: ["x"],
    });
  });

  test("that is unlimited limits only what it names", () => {
    expect(plan('id = "home"\nunlimited = true\nsearches_per_day = 5')).toMatchObject({
      unlimited: true,
      tokensPerDay: amountMax,
      requestsPerMinute: amountMax,
      coderCallsPerWindow: amountMax,
      searchesPerDay: 5,
    });
  });
});

// what is written, what is wrong with it
test.each([
  ['[[plans]]\nid = "a"\n[[plans]]\nid = "a"', "gate.toml:4: plans[1].id must be unique, is also the id of plans[0]"],
  ['[[plans]]\nid = "1"', "gate.toml:2: plans[0].id must be the id of a plan: up to 32 letters"],
  ['[[plans]]\nid = "__proto__"', "gate.toml:2: plans[0].id must be the id of a plan"],
  ['[[plans]]\nid = "a"\ntokens_per_day = 0.5', "gate.toml:3: plans[0].tokens_per_day must be a whole number"],
  ['[[plans]]\nid = "a"\nrequests_per_minute = 0', "gate.toml:3: plans[0].requests_per_minute must be a whole number"],
  ['[[plans]]\nid = "a"\nweight = 0', "gate.toml:3: plans[0].weight must be a whole number from 1 to 100"],
  ['[[plans]]\nid = "a"\ntokens = 1', "gate.toml:3: plans[0].tokens is unknown"],
  ['[[plans]]\nid = "a"\nunlimited = true\ntokens_per_day = 1', "gate.toml:4: plans[0].tokens_per_day must be absent"],
  [
    '[[plans]]\nid = "a"\nunlimited = true\n[console]\nsign_up = true',
    'gate.toml:5: console.sign_up must be false: strangers would get the plan "a", which is unlimited',
  ],
  [
    '[[plans]]\nid = "a"\n[[models]]\nid = "m"\nplans = ["a", "free"]',
    'gate.toml:5: models[0].plans[1] must be one of "a", is "free"',
  ],
  [
    '[[plans]]\nid = "a"\nmodels = ["hose"]\n[[models]]\nid = "house"',
    'gate.toml:3: plans[0].models[0] must be a name of one of [[models]], is "hose", did you mean "house"?',
  ],
  [
    '[[mcp]]\nname = "x"\nurl = "http://h/"\nplans = ["gold"]',
    'mcp[0].plans[0] must be one of "free", "plus", "standard", "pro", is "gold"',
  ],
])("%j is refused", (toml, problem) => {
  expect(() => read(toml)).toThrow(problem);
});

test("a plan may name models that only nodes list", () => {
  expect(plan('id = "a"\nmodels = ["qwen3:8b"]')?.models).toEqual(["qwen3:8b"]);
});

test("a thousand faults, and a fault of syntax behind a thousand rows, are told within processor time that nobody notices", () => {
  const rows = Array.from({ length: 1_000 }, (_, row) => `[[models]]\nid = "m${row}"\naliases = ["a"]\n`).join("");
  const processorMs = (work: () => void): number => {
    const { user, system } = process.cpuUsage();
    work();
    const { user: later, system: laterSystem } = process.cpuUsage();
    return (later - user + laterSystem - system) / 1_000;
  };
  expect(processorMs(() => expect(() => read(rows)).toThrow("gate.toml:3000: models[999].aliases[0]"))).toBeLessThan(
    5_000,
  );
  expect(processorMs(() => expect(() => read(`${rows}id = = 1\n`)).toThrow("gate.toml:3001: "))).toBeLessThan(5_000);
});
