// The committed catalog says what the specification says, and a wrong row is named.
import { describe, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import committed from "../../data/catalog.json" with { type: "json" };
import { CatalogError, embeddedCatalog, loadCatalog, readCatalog, plainModel } from "../../src/core/catalog.ts";
import type { Price } from "../../src/core/types.ts";

// Typed from the specification's model table: id, context, input, structured output, US dollars per 1M tokens.
const specified = `
core-1.6-lite                | 192K | image | JSON schema          | 3.90
core-1.6-pro                 | 192K | image | JSON schema          | 7.80
core-2-lite                  | 192K | image | JSON schema          | 3.90
core-2-pro                   | 192K | image | JSON schema          | 5.85
core-3                       | 192K | image | JSON schema          | 3.35
core-3-pro                   | 192K | image | JSON schema          | 3.35
core-3.1                     | 192K | image | JSON schema          | 3.35
core-3.1-pro                 | 192K | image | JSON schema          | 3.35
core-coder-1                 | 128K | text  | JSON schema          | 8.00
open-01-3BIT-REAP            | 256K | text  | JSON schema          | 1.95 / 3.90
open-02-3BIT-REAP            | 256K | text  | JSON schema          | 0.73 / 2.34
open-03-3BIT-REAP            | 256K | image | JSON schema          | 3.83 / 19.12
open-04-3BIT-REAP            | 256K | text  | JSON schema          | 0.75 / 3.30
open-05-3BIT-REAP            | 256K | image | JSON schema          | 0.50 / 2.00
open-06-W4A16-AUTOROUND-REAP | 256K | text  | JSON schema          | 0.50 / 2.00
open-07-W4A16-AUTOROUND-REAP | 256K | image | JSON schema          | 0.78 / 3.67
open-08-W4A16-AUTOROUND-REAP | 256K | text  | No structured output | 0.50 / 2.00
open-09-W4A16-AUTOROUND-REAP | 256K | image | JSON object          | 1.42 / 6.07
open-10-W8A16                | 256K | text  | JSON schema          | 0.50 / 2.00
open-11-W8A16                | 256K | image | JSON schema          | 0.50 / 2.00
open-12-W8A16                | 256K | text  | JSON schema          | 0.50 / 2.00`;

const contextTokens: Record<string, number> = { "128K": 131_072, "192K": 196_608, "256K": 262_144 };
const structuredOutput: Record<string, string> = {
  "JSON schema": "json_schema",
  "JSON object": "json_object",
  "No structured output": "none",
};
const cents = (dollars: string): number => Number(dollars.replace(".", ""));

function priceOf(text: string): Price {
  const [input, output] = text.split(" / ");
  if (output === undefined) return { kind: "flat", cents: cents(input!) };
  const inputCents = cents(input!);
  const cachedInputCents = (inputCents + ((10 - (inputCents % 10)) % 10)) / 10; // a tenth, rounded up to a cent
  return { kind: "split", inputCents, cachedInputCents, outputCents: cents(output) };
}

const rows = specified
  .trim()
  .split("\n")
  .map((row) => row.split("|").map((cell) => cell.trim()) as [string, string, string, string, string]);

const defaults = (calls: number, tokens: number) => ({ calls, tokens });

describe("the committed catalog", () => {
  const { models, plans, creditPacksTokens } = embeddedCatalog();

  test("has the 21 models of the specification in its order", () => {
    expect([...models.keys()]).toEqual(rows.map(([id]) => id));
    expect(rows).toHaveLength(21);
  });

  test.each(rows)("%s reads, bills and answers as specified", (id, context, input, structured, price) => {
    const hosted = id.startsWith("open-");
    expect(models.get(id)).toEqual({
      id,
      ...plainModel,
      tier: hosted ? "hosted" : "first-party",
      readsDepth: hosted,
      contextTokens: contextTokens[context]!,
      readsImages: input === "image",
      structuredOutput: structuredOutput[structured] as "json_schema",
      price: priceOf(price),
      budgetLimitsAnswer: hosted || ["core-1.6-lite", "core-1.6-pro", "core-coder-1"].includes(id),
      outputTokensDefault: defaults(id === "core-coder-1" ? 65_536 : 4_096, 4_096),
      encoding: "o200k_base",
      coder: id === "core-coder-1",
    });
  });

  test("has seven text-only models among the twelve hosted ones", () => {
    const hosted = [...models.values()].filter(({ tier }) => tier === "hosted");
    expect(hosted).toHaveLength(12);
    expect(hosted.filter(({ readsImages }) => !readsImages)).toHaveLength(7);
  });

  test("has the plans and credit packs of the specification", () => {
    const table = Object.values(plans).map((plan) => [
      plan.id,
      plan.name,
      plan.tokensPerDay,
      plan.coderCallsPerWindow,
      plan.searchesPerDay,
    ]);
    expect(table).toEqual([
      ["free", "Free", 30_000, 3, 3],
      ["plus", "Plus", 80_000, 20, 30],
      ["standard", "Standard", 265_000, 40, 50],
      ["pro", "Pro", 665_000, 60, 60],
    ]);
    expect(creditPacksTokens).toEqual([1_000_000, 2_000_000, 5_000_000]);
  });
});

describe("a catalog of one's own", () => {
  type Rows = { models: Record<string, unknown>[]; plans: Record<string, unknown>[]; credit_packs_tokens: unknown };

  const readChanged = (change: (rows: Rows) => void, budget?: number) => {
    const copy = structuredClone(committed) as unknown as Rows;
    change(copy);
    return readCatalog(copy, "my.json", budget);
  };

  test("has output budgets of its own, before the one of the configuration, before the specification's", () => {
    const read = (row: object, id: string, budget?: number) => {
      const change = ({ models }: Rows) =>
        void Object.assign(
          models.find((model) => model["id"] === id)!,
          row,
        );
      return readChanged(change, budget).models.get(id)!.outputTokensDefault;
    };
    expect(read({}, "core-3", 16_384)).toEqual(defaults(16_384, 16_384));
    expect(read({ default_output_tokens: 32_000 }, "core-3", 16_384)).toEqual(defaults(32_000, 32_000));
    expect(read({}, "core-coder-1", 16_384)).toEqual(defaults(65_536, 16_384));
    expect(read({ default_output_tokens: 32_000 }, "core-coder-1")).toEqual(defaults(32_000, 32_000));
    expect(read({ output_tokens_default: 60_000 }, "core-coder-1")).toEqual(defaults(60_000, 4_096));
    for (const wrong of [0, 65_537, 1.5, "many"]) {
      expect(() => read({ default_output_tokens: wrong }, "core-3")).toThrow(
        'models[4] "core-3": default_output_tokens must be a whole number of tokens from 1 to 65536',
      );
    }
  });
  const faults: [string, (rows: Rows) => void, string][] = [
    [
      "a price in fractions of a cent",
      ({ models }) => (models[3]!["price"] = { cents: 5.85 }),
      'my.json: models[3] "core-2-pro": price.cents must be a whole number >= 0, is 5.85',
    ],
    [
      "a negative price",
      ({ models }) => (models[9]!["price"] = { input_cents: -1, output_cents: 2 }),
      'my.json: models[9] "open-01-3BIT-REAP": price.input_cents must be a whole number >= 0, is -1',
    ],
    [
      "an encoding that nobody has",
      ({ models }) => (models[4]!["encoding"] = "o201k_base"),
      'my.json: models[4] "core-3": encoding must be one of "o200k_base", "cl100k_base", "p50k_base", "r50k_base", is "o201k_base"',
    ],
    [
      "a missing key",
      ({ models }) => delete models[4]!["context_tokens"],
      'my.json: models[4] "core-3": context_tokens is missing: must be a whole number of tokens >= 1',
    ],
    [
      "a misspelt key",
      ({ models }) => (models[4]!["reads_image"] = true),
      'my.json: models[4] "core-3": reads_image is unknown; did you mean "reads_images"?',
    ],
    [
      "an unknown tier",
      ({ models }) => (models[0]!["tier"] = "host"),
      'my.json: models[0] "core-1.6-lite": tier must be one of "first-party", "hosted", is "host"',
    ],
    [
      "an id used twice",
      ({ models }) => (models[5]!["id"] = "core-3"),
      'my.json: models[5] "core-3": id must be unique, is also the id of models[4]',
    ],
    [
      "a hosted price on a first-party tier",
      ({ models }) => (models[4]!["price"] = { cents: 1, output_cents: 2 }),
      'my.json: models[4] "core-3": price.output_cents does not fit a first-party model',
    ],
    [
      "a flat price on a hosted model",
      ({ models }) => (models[9]!["price"] = { cents: 1, input_cents: 1, output_cents: 2 }),
      'my.json: models[9] "open-01-3BIT-REAP": price.cents does not fit a hosted model',
    ],
    ["a missing plan", ({ plans }) => plans.pop(), 'my.json: plans: must have "pro" exactly once, has it 0 times'],
    [
      "a credit pack below the least purchase",
      (rows) => (rows.credit_packs_tokens = [5]),
      "my.json: credit_packs_tokens[0] must be a whole number of tokens from 1000000 to 100000000, is 5",
    ],
  ];

  test.each(faults)("names the row of %s", (_, change, message) => {
    expect(() => readChanged(change)).toThrow(new CatalogError(message));
  });

  test("names every fault on its own line", () => {
    const change = ({ models }: Rows) => {
      models[0]!["coder"] = 1;
      models[1]!["id"] = "";
    };
    expect(() => readChanged(change)).toThrow(/^my\.json: models\[0\] .*\nmy\.json: models\[1\] .*$/);
  });

  test("bills cached input at a tenth of the input rate, rounded up to a cent, unless it says otherwise", () => {
    const cachedCents = (price: object) =>
      readChanged(({ models }) => (models[9]!["price"] = price)).models.get("open-01-3BIT-REAP")!.price;
    expect(cachedCents({ input_cents: 31, output_cents: 2 })).toMatchObject({ cachedInputCents: 4 });
    expect(cachedCents({ input_cents: 30, output_cents: 2 })).toMatchObject({ cachedInputCents: 3 });
    expect(cachedCents({ input_cents: 30, cached_input_cents: 0, output_cents: 2 })).toMatchObject({
      cachedInputCents: 0,
    });
  });

  test("is read from a file, and a file that cannot be read is named", async () => {
    const folder = await mkdtemp(join(tmpdir(), "tollgate-catalog-"));
    try {
      await Bun.write(join(folder, "mine.json"), JSON.stringify(committed));
      expect((await loadCatalog(join(folder, "mine.json"))).models.size).toBe(21);
      await Bun.write(join(folder, "broken.json"), "{");
      expect(loadCatalog(join(folder, "broken.json"))).rejects.toThrow(/broken\.json: cannot be read as JSON: /);
      expect(loadCatalog(join(folder, "none.json"))).rejects.toThrow(/none\.json: cannot be read as JSON: /);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
