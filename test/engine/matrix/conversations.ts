// Conversations of several people over two engines with prefix caches behind one gateway: each turn goes back to the engine
// that has the conversation, and what the gateway expects to be cached is what the engines report.
import { GatewayProcess } from "../../fixtures/gateway-process.ts";
import { Clients, hosted, neverEnds } from "./question.ts";
import { type Exchange, Tap } from "./tap.ts";

type Message = { role: "user" | "assistant"; content: string };

const people = 6;
const turns = 4;
const answered = { max_tokens: 40, ...neverEnds };
/** Of the input. Engines keep whole blocks (vLLM's on a processor are 128 tokens), and so does the index, by bytes. */
const tolerancePart = 0.05;

/** What is wrong, and the figures in words. */
export async function converse(ports: readonly number[]): Promise<{ problems: string[]; figures: string }> {
  const problems: string[] = [];
  const run = crypto.randomUUID();
  const markOf = (person: number): string => `person ${person} of ${run}`;
  using stack = new DisposableStack();
  const taps = await Promise.all(ports.map((port) => Tap.before(port)));
  for (const tap of taps) stack.use(tap);
  const nodes = taps.map(({ url }, at) => `[[nodes]]\nname = "node-${at}"\nurl = "${url}"\n`);
  await using gateway = await GatewayProcess.start({
    config: `[server]\nshare_prefix_cache = true\n${nodes.join("")}`,
  });
  const talks = await Promise.all(
    Array.from({ length: people }, async (_none, person) => {
      const { openai } = new Clients(gateway.url, (await gateway.account()).api_key);
      const messages: Message[] = [];
      return async (turn: number): Promise<void> => {
        messages.push({ role: "user", content: `${markOf(person)}: ${wordsOf(person, turn)}` });
        const { choices } = await openai.chat.completions.create({ model: hosted, messages, ...answered });
        messages.push({ role: "assistant", content: choices[0]!.message.content ?? "" });
      };
    }),
  );
  await Promise.all(talks.map((talk) => talk(0)));
  // From here on one after the other: while a node reads somebody else's prompt, a turn may well be sooner elsewhere.
  for (let turn = 1; turn < turns; turn++) for (const talk of talks) await talk(turn);
  const of = (person: number) =>
    taps.map((tap) => tap.generations.filter(({ request }) => request.includes(markOf(person))).length);
  const spread = Array.from({ length: people }, (_none, person) => of(person));
  const astray = spread.filter((counts) => counts.every((count) => count < turns));
  if (astray.length > 0) problems.push(`turns did not go back to their node: ${JSON.stringify(spread)}`);
  if (taps.some(({ generations }) => generations.length === 0))
    problems.push(`one node had none: ${JSON.stringify(spread)}`);
  // A node's answers count from the first on that reports cached tokens: until then it may be one that reports none.
  const counted = taps.flatMap((tap) => countedOf(tap.generations));
  const sum = (key: "input" | "cached"): number => counted.reduce((all, usage) => all + usage[key], 0);
  const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
  const metric = (name: string): number =>
    Number(new RegExp(`^tollgate_prefix_cache_${name}_tokens_total (\\S+)$`, "m").exec(metrics)?.[1]);
  const [expected, reported] = [metric("expected"), metric("reported")];
  const input = sum("input");
  if (reported !== sum("cached")) problems.push(`engines reported ${sum("cached")}, the gateway counted ${reported}`);
  if (!(Math.abs(expected - reported) <= tolerancePart * input) || reported < input / 3)
    problems.push(`of ${input} tokens of input ${expected} were expected in caches, and ${reported} were there`);
  const percent = (tokens: number): string => `${((100 * tokens) / input).toFixed(1)} %`;
  return {
    problems,
    figures: `cached ${percent(reported)} of the input, expected ${percent(expected)}; ${JSON.stringify(spread)}`,
  };
}

/** Words that the tiny model knows, another text for each. */
const wordsOf = (person: number, turn: number): string =>
  Array.from({ length: 110 }, (_none, at) =>
    (((at + 1) * (7 * person + turn + 11) * 2_654_435) >>> 3).toString(36),
  ).join(" ");

function countedOf(exchanges: readonly Exchange[]) {
  const usages = exchanges.flatMap((exchange) => Tap.usageOf(exchange) ?? []);
  const from = usages.findIndex(({ cached }) => cached > 0);
  return from < 0 ? [] : usages.slice(from);
}
