// The checks of the matrix: each asks the gateway, in the dialects that it concerns, streamed and not, and says what of
// the answers is wrong.
import { isRecord } from "../../../src/core/is-record.ts";
import { eventually } from "../../fixtures/eventually.ts";
import type { Account, GatewayProcess } from "../../fixtures/gateway-process.ts";
import { converse } from "./conversations.ts";
import { RunningEngine } from "./running-engine.ts";
import { oddSchemas } from "./odd-schemas.ts";
import {
  type Answer,
  Clients,
  type Dialect,
  firstParty,
  hosted,
  neverEnds,
  type Question,
  Refusal,
  ways,
} from "./question.ts";
import { bodyOf, Tap } from "./tap.ts";

/** A gateway before an engine, and an account of its own for the check. */
export class Trial {
  readonly problems: string[] = [];

  constructor(
    readonly engine: RunningEngine,
    readonly tap: Tap,
    readonly gateway: GatewayProcess,
    readonly account: Account,
    readonly clients = new Clients(gateway.url, account.api_key),
  ) {}

  expect(holds: boolean, problem: string): void {
    if (!holds) this.problems.push(problem);
  }

  /** Asks in each of the ways and hands the answer on; an error is a problem, with what the engine had said. */
  async each(
    question: Question,
    judge: (answer: Answer, way: string) => void | Promise<void>,
    among = ways,
  ): Promise<void> {
    for (const [dialect, stream] of among) {
      const way = `${dialect}${stream ? " stream" : ""}`;
      const before = this.problems.length;
      try {
        await judge(await this.clients.ask(dialect, stream, question), way);
      } catch (thrown) {
        this.problems.push(`${way}: ${String(thrown)}`);
      }
      if (this.problems.length > before) this.problems[before] += this.#lastExchange();
    }
  }

  #lastExchange(): string {
    const last = this.tap.generations.at(-1);
    if (last === undefined) return "";
    return `\n    asked of the engine: ${clipped(bodyOf(last.request))}\n    it answered: ${clipped(bodyOf(last.answer))}`;
  }

  /** The ledger's last row. */
  async charged(): Promise<{ input: number; cached_input: number; output: number } | undefined> {
    return (await this.gateway.usage(this.account.email, 1))[0];
  }

  /** The answer or the error. */
  outcome(dialect: Dialect, stream: boolean, question: Question): Promise<Answer | Refusal> {
    return this.clients.ask(dialect, stream, question).catch((thrown: unknown) => thrown as Refusal);
  }

  /** Asks for what must be refused, in each of the ways. */
  async refused(question: Question, judge: (refusal: Refusal, way: string) => void, among = ways): Promise<void> {
    for (const [dialect, stream] of among) {
      const way = `${dialect}${stream ? " stream" : ""}`;
      const before = this.problems.length;
      const outcome = await this.outcome(dialect, stream, question);
      if (outcome instanceof Refusal) judge(outcome, way);
      else this.problems.push(`${way}: answered with ${clipped(JSON.stringify(outcome))}`);
      if (this.problems.length > before) this.problems[before] += this.#lastExchange();
      if (!(outcome instanceof Refusal)) return; // a prompt that is not refused may take minutes in each way
    }
  }
}

const clipped = (text: string): string => (text.length > 500 ? `${text.slice(0, 250)} ... ${text.slice(-250)}` : text);

const greeting = "Hello! How can I help you?";
const report = "It is sunny in Paris at 21 degrees.";
const city = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const weather = { name: "get_weather", description: "weather of a city", parameters: city };
const shortCity = { ...city, properties: { city: { type: "string", maxLength: 12 } } };
/** Nothing in the prompt suggests the call: with one of these two the tiny model rambles to the budget's end, by engine. */
const forcedTools = [weather, { ...weather, parameters: shortCity }];
const time = { name: "get_time", description: "the time", parameters: { type: "object", properties: {} } };
const person = {
  type: "object",
  properties: { name: { type: "string", maxLength: 12 }, age: { type: "integer", minimum: 0, maximum: 150 } },
  required: ["name", "age"],
  additionalProperties: false,
};
const inParis = { prompt: "What is the weather in Paris?", tools: [weather] };
const inTwoCities = { prompt: "What is the weather in London and Tokyo?", tools: [weather] };
const tellingWays = ways.filter(([dialect]) => dialect !== "responses");
const streamsOnly = ways.filter(([, stream]) => stream);
const chatWays = ways.filter(([dialect]) => dialect === "chat");
/** More than the tiny model ever says by itself. */
const heldAtBytes = 4_000;
const endless = { prompt: "Tell me a long story ".repeat(3), maxTokens: 2_500 };

const said = (answer: Answer): string => clipped(JSON.stringify({ ...answer, usage: undefined }));

export const checks = {
  async text(trial) {
    await trial.each({ prompt: "Say hello" }, (answer, way) => {
      trial.expect(answer.text.trim() === greeting && answer.end === "stop", `${way}: ${said(answer)}`);
    });
  },

  async "no blank before an answer"(trial) {
    await trial.each({ prompt: "Say hello" }, (answer, way) => {
      trial.expect(answer.text === answer.text.trim(), `${way}: ${said(answer)}`);
    });
    await trial.each(inParis, (answer, way) => {
      const blank = answer.parts.filter((part) => part === "text" || part === "message").length;
      trial.expect(answer.text === "" && blank === 0, `${way}: ${said(answer)}`);
    });
  },

  async thoughts(trial) {
    await trial.each({ prompt: "Say hello", thinks: true }, (answer, way) => {
      const holds = answer.reasoning.includes("greet") && answer.text.trim() === greeting;
      trial.expect(holds, `${way}, on: ${said(answer)}`);
    });
  },

  async "no thoughts"(trial) {
    await trial.each({ prompt: "Say hello", thinks: false }, (answer, way) => {
      const holds = answer.reasoning === "" && answer.text !== "" && !/think>/.test(answer.text);
      trial.expect(holds, `${way}, off: ${said(answer)}`);
    });
  },

  async usage(trial) {
    await trial.each({ prompt: "Count to 12" }, async ({ usage }, way) => {
      const engine = Tap.usageOf(trial.tap.generations.at(-1)!);
      const row = await eventually("the charge", async () => {
        const row = await trial.charged();
        return row?.output === usage.output && row;
      }).catch(() => trial.charged());
      const counted = { input: usage.input, output: usage.output };
      const booked = { input: row?.input, output: row?.output };
      const holds = Bun.deepEquals(counted, booked) && engine?.input === usage.input && engine.output === usage.output;
      const figures = JSON.stringify({ client: counted, ledger: booked, engine });
      trial.expect(holds, `${way}: ${figures}`);
    });
  },

  async "30 at once"(trial) {
    const before = trial.tap.generations.length;
    const asked = Array.from({ length: 30 }, async (_, index) => {
      const [dialect, stream] = ways[index % ways.length]!;
      return (await trial.clients.ask(dialect, stream, { prompt: `Count to ${3 + (index % 20)}`, maxTokens: 80 }))
        .usage;
    });
    const outcomes = await Promise.allSettled(asked);
    const failed = outcomes.find((outcome) => outcome.status === "rejected");
    if (failed !== undefined) return void trial.problems.push(String(failed.reason));
    const sum = (usages: readonly { output: number }[]): number => usages.reduce((all, { output }) => all + output, 0);
    const clients = sum(outcomes.map((outcome) => (outcome as PromiseFulfilledResult<Answer["usage"]>).value));
    // what met a connection that was being closed was sent again
    const answered = trial.tap.generations.slice(before).filter(({ answer }) => answer !== "");
    const engine = sum(answered.map((each) => Tap.usageOf(each) ?? { output: NaN }));
    const ledger = sum(await trial.gateway.usage(trial.account.email, 30));
    const holds = clients === engine && clients === ledger;
    trial.expect(holds, `output tokens: clients ${clients}, engine ${engine}, ledger ${ledger}`);
  },

  async "cached tokens"(trial) {
    const question = { prompt: `${"The quick brown fox. ".repeat(60)}Count to 5`, maxTokens: 20 };
    for (let time = 0; time < 2; time++) await trial.clients.ask("chat", false, question);
    await trial.each(question, async ({ usage }, way) => {
      const engine = Tap.usageOf(trial.tap.generations.at(-1)!)?.cached;
      const row = await trial.charged();
      const holds = usage.cached > 0 && usage.cached === engine && row?.cached_input === usage.cached;
      trial.expect(holds, `${way}: client ${usage.cached}, ledger ${row?.cached_input}, engine ${engine}`);
    });
  },

  async "no max_tokens"(trial) {
    const answersOnly = ways.filter(([dialect]) => dialect !== "messages");
    await trial.each(
      { prompt: "Say hello", maxTokens: null },
      (answer, way) =>
        trial.expect(answer.text.trim() === greeting && answer.end === "stop", `${way}: ${said(answer)}`),
      answersOnly,
    );
  },

  async "max_tokens beyond the context"(trial) {
    const { contextTokens } = trial.engine.recipe;
    for (const maxTokens of [contextTokens - 2, 32_000]) {
      await trial.each(
        { prompt: "Say hello", maxTokens },
        (answer, way) => trial.expect(answer.text.trim() === greeting, `${way}, ${maxTokens}: ${said(answer)}`),
        maxTokens === 32_000 ? streamsOnly : ways, // the official package for messages insists on it
      );
    }
  },

  async "answer cut at max_tokens"(trial) {
    await trial.each({ prompt: "Tell me a long story", maxTokens: 20 }, (answer, way) => {
      trial.expect(answer.end === "length" && answer.usage.output === 20, `${way}: ${JSON.stringify(answer)}`);
    });
  },

  async "prompt too long"(trial) {
    const { contextTokens } = trial.engine.recipe;
    const prompt = "Say hello to the weather in Paris. ".repeat(Math.ceil((contextTokens * 1.5) / 9));
    const before = await trial.gateway.usage(trial.account.email);
    await trial.refused({ prompt, maxTokens: 20 }, ({ status, body, message }, way) => {
      const [, tokens, maximum] = /(\d+) tokens > (\d+) maximum/.exec(`${message} ${JSON.stringify(body)}`) ?? [];
      const isTrue =
        Number(maximum) === contextTokens && Number(tokens) > contextTokens && Number(tokens) < 3 * contextTokens;
      trial.expect(status === 400 && isTrue, `${way}: ${status} ${message}`);
    });
    const after = await trial.gateway.usage(trial.account.email);
    trial.expect(after.length === before.length, `charged: ${JSON.stringify(after[0])}`);
    const [node] = await trial.gateway.cli<{ health: string }[]>("nodes");
    trial.expect(node?.health === "well", `the node is ${node?.health} after it`);
  },

  async "stop sequences"(trial) {
    await trial.each(
      { prompt: "Count to 12", stop: [", 3"] },
      (answer, way) =>
        trial.expect(answer.text.trim() === "1, 2" && answer.end !== "length", `${way}: ${said(answer)}`),
      tellingWays,
    );
  },

  async "named stop sequence"(trial) {
    await trial.each(
      { prompt: "Count to 12", stop: [", 9", ", 3"] },
      (answer, way) => trial.expect(answer.text.trim() === "1, 2" && answer.end === ", 3", `${way}: ${said(answer)}`),
      ways.filter(([dialect]) => dialect === "messages"),
    );
  },

  async "five stop sequences"(trial) {
    await trial.each(
      { prompt: "Count to 12", stop: ["aa", "bb", "cc", "dd", ", 3"], model: firstParty },
      (answer, way) => trial.expect(answer.text.trim() === "1, 2", `${way}: ${said(answer)}`),
      tellingWays,
    );
  },

  async tools(trial) {
    await trial.each(inParis, (answer, way) => {
      const holds = isCall(answer, "Paris") && answer.text.trim() === "" && answer.end === "calls";
      trial.expect(holds, `${way}: ${said(answer)}`);
    });
  },

  async "two calls at once"(trial) {
    await trial.each(inTwoCities, (answer, way) => {
      trial.expect(isCall(answer, "London", "Tokyo"), `${way}: ${said(answer)}`);
    });
  },

  async "one call where one is wanted"(trial) {
    await trial.each({ ...inTwoCities, parallel: false }, (answer, way) => {
      trial.expect(answer.calls.length === 1, `${way}: ${said(answer)}`);
    });
  },

  async "no call where none is wanted"(trial) {
    await trial.each({ ...inParis, choice: "none" }, (answer, way) => {
      trial.expect(answer.calls.length === 0 && answer.end !== "calls", `${way}: ${said(answer)}`);
    });
  },

  async "forced tool"(trial) {
    const { problems } = trial;
    for (const choice of ["get_weather", "required"]) {
      const before = problems.length;
      for (const forced of forcedTools) {
        problems.length = before;
        const tools = choice === "required" ? [forced] : [forced, time];
        await trial.each({ prompt: "Say hello", tools, choice, maxTokens: 400 }, (answer, way) => {
          const holds = answer.calls.length === 1 && isCall(answer, null);
          trial.expect(holds, `${way}, ${choice} of ${tools.length}: ${said(answer)}`);
        });
        if (problems.length === before) break;
      }
    }
  },

  async "any of two tools"(trial) {
    await trial.each({ prompt: "Say hello", tools: [weather, time], choice: "required" }, (answer, way) => {
      const haveArguments = answer.calls.every((call) => isRecord(parsed(call.arguments)));
      trial.expect(answer.calls.length > 0 && haveArguments && answer.end === "calls", `${way}: ${said(answer)}`);
    });
  },

  async "tool results"(trial) {
    const prompt = [
      { role: "user", content: inParis.prompt },
      { role: "call", id: "call_1", name: weather.name, arguments: '{"city":"Paris"}' },
      { role: "result", id: "call_1", content: "sunny, 21 C" },
    ] as const;
    await trial.each({ prompt, tools: [weather] }, (answer, way) => {
      trial.expect(answer.text.trim() === report, `${way}: ${said(answer)}`);
    });
  },

  async "JSON schema"(trial) {
    await trial.each({ prompt: "Give me Ada, age 36, as JSON", schema: person }, (answer, way) => {
      trial.expect(Bun.deepEquals(parsed(answer.text), { name: "Ada", age: 36 }), `${way}: ${said(answer)}`);
    });
  },

  async "odd JSON schemas"(trial) {
    for (const [name, schema, keptBy] of oddSchemas(person)) {
      const question = { prompt: "Give me Ada, age 36, as JSON", maxTokens: 200, schema };
      const outcome = await trial.clients.ask("chat", false, question).catch((thrown: unknown) => thrown as Refusal);
      const answered = !(outcome instanceof Error);
      const isMisfit = !answered && outcome.message.includes("does not match the requested format");
      const holds = answered
        ? parsed(outcome.text) !== undefined || outcome.end === "length"
        : (keptBy === "nobody" && outcome.status === 400) || (keptBy === "model" && isMisfit);
      const what = answered ? said(outcome) : outcome.message;
      trial.expect(holds, `${name} (${clipped(JSON.stringify(schema))}): ${what}`);
      trial.expect(await trial.engine.isUp(), `${name}: the engine died`);
      if (!(await trial.engine.isUp())) await trial.engine.restart();
    }
  },

  async "exact counts"(trial) {
    const { clients, gateway, account } = trial;
    for (const tools of [undefined, [weather]]) {
      const question = { prompt: inParis.prompt, ...(tools && { tools }), maxTokens: 5 };
      const body = {
        model: hosted,
        messages: [{ role: "user", content: inParis.prompt }],
        ...(tools && {
          tools: tools.map(({ name, description, parameters }) => ({ name, description, input_schema: parameters })),
        }),
      };
      const { input_tokens } = await clients.anthropic.messages.countTokens(body);
      const { usage } = await clients.ask("messages", false, question);
      const counted = `counted ${input_tokens}, used ${usage.input}`;
      trial.expect(input_tokens === usage.input, `${tools ? "with tools: " : ""}${counted}`);
    }
    const reply = await fetch(`${gateway.url}/v1/tokenize`, {
      method: "POST",
      headers: { authorization: `Bearer ${account.api_key}` },
      body: JSON.stringify({ model: hosted, messages: [{ role: "user", content: "Say hello" }] }),
    });
    const counted = (await reply.json()) as { exact?: boolean };
    trial.expect(counted.exact === true, `/v1/tokenize: ${JSON.stringify(counted)}`);
  },

  async "client's fault is a 400"(trial) {
    const bias = { logit_bias: { "999999": 1 } };
    for (const stream of [false, true]) {
      const question = { prompt: "Say hello", chatOnly: bias, maxTokens: 20 };
      const outcome = await trial.clients.ask("chat", stream, question).catch((thrown: unknown) => thrown);
      const holds = !(outcome instanceof Refusal) || outcome.status === 400;
      trial.expect(holds, `a bias for a token that there is not, streamed ${stream}: ${String(outcome)}`);
    }
    const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    const image = { type: "image_url", image_url: { url: `data:image/png;base64,${png}` } };
    const messages = [{ role: "user", content: [{ type: "text", text: "What is this?" }, image] }];
    const about =
      (way: string): ((refusal: Refusal) => void) =>
      (refusal) => {
        const holds = refusal.status === 400 && refusal.message.includes("images");
        trial.expect(holds, `an image, ${way}: ${refusal.message}`);
      };
    await trial.refused(
      { prompt: "What is this?", chatOnly: { messages } },
      (refusal, way) => about(way)(refusal),
      chatWays,
    );
  },

  async models(trial) {
    const { kind, contextTokens } = trial.engine.recipe;
    type Node = { engine: string | null; context: number | null; problem: string | null; health: string };
    const [node] = await trial.gateway.cli<Node[]>("nodes");
    const found = JSON.stringify(node);
    trial.expect(node?.health === "well" && node.problem === null, `nodes: ${found}`);
    trial.expect(kind === null || node?.engine === kind, `it is ${kind}, not ${node?.engine}`);
    trial.expect(node?.context === contextTokens, `its context is ${contextTokens}, not ${node?.context}`);
    const listed = await trial.clients.openai.models.list();
    const model = listed.data.find(({ id }) => id === hosted) as { context_length?: number } | undefined;
    trial.expect(
      model?.context_length === contextTokens,
      `GET /v1/models does not tell ${contextTokens}: ${JSON.stringify(model)}`,
    );
  },

  async "conversations on two nodes"({ engine, problems }) {
    await using other = await RunningEngine.start(engine.name);
    const { problems: found, figures } = await converse([engine.port, other.port]);
    problems.push(...found);
    console.log(`  ${figures}`);
  },

  async "client leaves"(trial) {
    for (const [dialect, stream] of ways) {
      const way = `${dialect}${stream ? " stream" : ""}`;
      const controller = new AbortController();
      const before = trial.tap.generations.length;
      trial.tap.holdAfterBytes = heldAtBytes;
      const asked = trial.outcome(dialect, stream, { ...endless, chatOnly: neverEnds, signal: controller.signal });
      try {
        await Promise.race([asked, trial.tap.holds(before, 1)]);
        const exchange = trial.tap.generations[before];
        const leftAtMs = performance.now();
        controller.abort();
        await asked;
        await eventually("the gateway leaves the engine", async () => exchange?.closedAtMs !== null, 3_000);
        const lateMs = (exchange?.closedAtMs ?? Infinity) - leftAtMs;
        trial.expect(lateMs < 1_000, `${way}: the gateway left the engine after ${lateMs.toFixed(0)} ms`);
        await eventually("the engine is idle", async () => (await trial.engine.isIdle()) !== false, 5_000);
      } catch (thrown) {
        trial.problems.push(`${way}: ${String(thrown)}`);
      } finally {
        trial.tap.holdAfterBytes = Infinity;
        controller.abort();
        await asked;
      }
    }
    await trial.gateway.expectNothingReserved();
  },

  /**
   * Ends the engine in the middle of answers, of which clients of streams have read some; these two come last. What came
   * is free, each stream says that it failed and none that it is whole, and the gateway finds the engine again by itself.
   */
  async "engine dies"(trial) {
    const together = trial.engine.recipe.oneAtATime === true ? ways.map((way) => [way]) : [ways];
    for (const begun of together) await dies(trial, begun);
  },

  async "comes back with another model"(trial) {
    await trial.engine.restart("another-model");
    await answersAgain(trial);
  },
} as const satisfies Record<string, (trial: Trial) => Promise<void>>;

export type CheckName = keyof typeof checks;

/** These are answered when it dies. */
async function dies(trial: Trial, begun: readonly (typeof ways)[number][]): Promise<void> {
  const { tap, account, gateway, engine, clients } = trial;
  const before = (await gateway.usage(account.email)).length;
  const { credit, allowance } = await gateway.show(account.email);
  tap.holdAfterBytes = heldAtBytes;
  const already = tap.generations.length;
  const question = { ...endless, chatOnly: neverEnds };
  const isInTurn = engine.recipe.inTurn === true;
  const ask = (dialect: Dialect) => [dialect, clients.raw(dialect, { ...question, thinks: true })] as const;
  const [first, ...others] = begun.filter(([, stream]) => stream).map(([dialect]) => dialect);
  const streams = first === undefined ? [] : [ask(first)];
  if (isInTurn) await tap.holds(already, 1);
  streams.push(...others.map(ask));
  const whole = begun
    .filter(([, stream]) => !stream)
    .map(([dialect]) => [dialect, trial.outcome(dialect, false, question)] as const);
  if (isInTurn) await eventually("all have come", async () => tap.generations.length >= already + begun.length);
  else await tap.holds(already, begun.length);
  for (const [dialect, stream] of isInTurn ? streams.slice(0, 1) : streams) {
    await eventually(`${dialect}: some of the answer is read`, async () => stream.text.split('"delta"').length > 3);
  }
  await engine.kill();
  tap.holdAfterBytes = Infinity;
  for (const [dialect, stream] of streams) {
    await stream.ended.catch(() => {});
    const last = stream.text.trimEnd().split("\n\n").at(-1)!;
    const isError = /"error":\s*\{/.test(last) && !/\[DONE\]|message_stop|response\.completed/.test(last);
    trial.expect(isError, `${dialect} stream: its last event is no error: ${clipped(last)}`);
  }
  for (const [dialect, asked] of whole) {
    const outcome = await asked;
    const holds = outcome instanceof Refusal && outcome.status !== null && outcome.status >= 500;
    trial.expect(holds, `${dialect}: ${outcome instanceof Refusal ? outcome.message : said(outcome)}`);
  }
  const meanwhile = await trial.outcome("chat", false, { prompt: "Say hello" });
  trial.expect(meanwhile instanceof Refusal, "it answers without an engine");
  await gateway.expectNothingReserved();
  const rows = (await gateway.usage(account.email)).length - before;
  const after = await gateway.show(account.email);
  const isFree = after.credit === credit && Bun.deepEquals(after.allowance, allowance);
  trial.expect(rows === 0 && isFree, `${rows} rows; ${JSON.stringify([credit, allowance, after])}`);
  await engine.restart();
  await answersAgain(trial);
}

/** Requests are what makes the gateway look again. */
async function answersAgain(trial: Trial): Promise<void> {
  const errors: string[] = [];
  for (let attempt = 0; attempt < 30; attempt++) {
    const outcome = await trial.outcome("chat", false, { prompt: "Say hello" });
    if (!(outcome instanceof Refusal)) return;
    errors.push(outcome.message);
    await Bun.sleep(1_000);
  }
  trial.problems.push(`30 requests after it came back: ${[...new Set(errors)].join(", ")}`);
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

/** Whether it calls for the weather of these cities; `null`: of any one. */
function isCall({ calls, end }: Answer, ...cities: readonly (string | null)[]): boolean {
  const asked = calls.map((call) => (parsed(call.arguments) as { city?: unknown } | undefined)?.city);
  const all = calls.every(({ name }) => name === "get_weather") && calls.length === cities.length && end === "calls";
  return all && cities.every((wanted, at) => (wanted === null ? typeof asked[at] === "string" : asked[at] === wanted));
}
