// What people and programs ask, by a seed: sessions of turns. A turn comes when its time has come and the answer before it has
// been read. Its prompt is everything before it, the answers, and new text.
import { readFileSync } from "node:fs";
import type { Priority } from "../../src/core/priority.ts";
import type { Ms } from "../../src/core/types.ts";
import { type Message, textOf } from "./text.ts";

type Part = Readonly<{ role: "system" | "user"; seed: string; tokens: number }>;
type Turn = Readonly<{ at: Ms; parts: readonly Part[]; output: number }>;
export type Session = Readonly<{
  id: string;
  account: string;
  /** An end user of the account. */
  user: string;
  priority: Priority;
  model: string;
  turns: readonly Turn[];
  /** After each answer. */
  restMs: Ms;
  /** Its turns do not continue each other. */
  isFresh: boolean;
  /** Its only turn comes again and again. */
  repeats: boolean;
}>;
type Fault = Readonly<{ at: Ms; node: number; what: "down" | "up" | "cold" }>;
/** `speed` 1 is that of the other traces. */
type NodeShape = Readonly<{ speed: number; models: readonly string[] }>;
export type Trace = Readonly<{
  name: string;
  nodes: readonly NodeShape[];
  sessions: readonly Session[];
  faults: readonly Fault[];
  /** No turn comes later. */
  endMs: Ms;
  /** Whose first tokens are looked at; the others are what they meet. Null: everyone's. */
  judged: ((session: Session) => boolean) | null;
}>;

export const usualModel = "sim";

type Random = () => number;
function randomOf(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
const exponential = (random: Random, mean: number): number => -Math.log(1 - random()) * mean;
function lognormal(random: Random, median: number, sigma: number, least: number, most: number): number {
  const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  return Math.round(Math.min(most, Math.max(least, median * Math.exp(sigma * normal))));
}
function arrivals(random: Random, fromMs: Ms, endMs: Ms, perSecond: number): Ms[] {
  const times: Ms[] = [];
  for (let at = fromMs; at < endMs; at += exponential(random, 1_000 / perSecond)) times.push(at);
  return times;
}

const session = (id: string, account: string, turns: readonly Turn[], more: Partial<Session> = {}): Session => ({
  id,
  account,
  user: "",
  priority: "standard",
  model: usualModel,
  turns,
  restMs: 500,
  isFresh: false,
  repeats: false,
  ...more,
});

/** People's chats below one system prompt, with lengths as in ShareGPT; `hotPart` of them are the first account's. */
function chats(seed: number, endMs: Ms, perSecond: number, accounts: number, hotPart = 0): Session[] {
  const random = randomOf(seed);
  const turnsMean = 5;
  return arrivals(random, 0, endMs, perSecond / turnsMean).map((began, n) => {
    const account = hotPart > 0 && random() < hotPart ? 0 : Math.floor(random() * accounts);
    const turns: Turn[] = [];
    let at = began;
    do {
      const tokens = lognormal(random, 60, 1.2, 8, 4_000);
      const user: Part = { role: "user", seed: `chat ${seed} ${n} ${turns.length}`, tokens };
      const system: Part = { role: "system", seed: `product ${seed}`, tokens: 1_500 };
      turns.push({
        at,
        parts: turns.length === 0 ? [system, user] : [user],
        output: lognormal(random, 180, 0.7, 16, 800),
      });
      at += 3_000 + exponential(random, 9_000);
    } while (random() < 1 - 1 / turnsMean);
    return session(`chat-${n}`, `a${account}`, turns);
  });
}

/** Coding agents: the system prompt and tools of one program, and a context that each tool's result makes longer. */
function agents(seed: number, endMs: Ms, count: number, accounts: number): Session[] {
  const random = randomOf(seed);
  return Array.from({ length: count }, (_none, n) => {
    const turns: Turn[] = [];
    let at = random() * Math.min(30_000, 0.3 * endMs);
    const firstTokens = 8_000 + Math.floor(random() * 28_000);
    let context = 12_000;
    while (at < endMs && context < 60_000) {
      const tokens = turns.length === 0 ? firstTokens : lognormal(random, 900, 0.9, 50, 8_000);
      const user: Part = { role: "user", seed: `agent ${seed} ${n} ${turns.length}`, tokens };
      const system: Part = { role: "system", seed: `program ${seed}`, tokens: 12_000 };
      turns.push({
        at,
        parts: turns.length === 0 ? [system, user] : [user],
        output: lognormal(random, 120, 0.8, 20, 800),
      });
      context += tokens;
      at += 2_500 + exponential(random, 3_500);
    }
    return session(`agent-${n}`, `a${n % accounts}`, turns);
  });
}

const aboutDocument = (document: Part, question: string): Part[] => [
  { role: "system", seed: "rag", tokens: 400 },
  document,
  { role: "user", seed: question, tokens: 40 },
];

/** Questions about few documents, some of which are asked about far more often. */
function rag(seed: number, endMs: Ms, perSecond: number, accounts: number, documents = 30): Session[] {
  const random = randomOf(seed);
  const sizes = Array.from({ length: documents }, () => 4_000 + Math.floor(random() * 10_000));
  const sum = sizes.reduce((sum, _size, at) => sum + 1 / (at + 1), 0);
  return arrivals(random, 0, endMs, perSecond).map((at, n) => {
    let pick = random() * sum;
    let document = 0;
    while ((pick -= 1 / (document + 1)) > 0 && document < documents - 1) document++;
    const part: Part = { role: "user", seed: `document ${seed} ${document}`, tokens: sizes[document]! };
    const output = lognormal(random, 150, 0.5, 20, 500);
    const account = Math.floor(random() * accounts);
    return session(`rag-${n}`, `a${account}`, [{ at, parts: aboutDocument(part, `question ${seed} ${n}`), output }]);
  });
}

/** From then on everyone asks about one new document. */
function hotDocument(seed: number, fromMs: Ms, endMs: Ms, perSecond: number, accounts: number): Session[] {
  const random = randomOf(seed);
  const document: Part = { role: "user", seed: `hot ${seed}`, tokens: 30_000 };
  return arrivals(random, fromMs, endMs, perSecond).map((at, n) => {
    const parts = aboutDocument(document, `question ${seed} ${n}`);
    const output = lognormal(random, 150, 0.5, 20, 500);
    return session(`hot-${n}`, `a${Math.floor(random() * accounts)}`, [{ at, parts, output }]);
  });
}

/**
 * As Mooncake's published conversations (FAST 2025): long inputs of very different lengths, short answers, two of five tokens
 * of prompts seen before.
 */
function mooncakeLike(seed: number, endMs: Ms, perSecond: number, accounts: number): Session[] {
  const random = randomOf(seed);
  const turnsMean = 1.65;
  return arrivals(random, 0, endMs, perSecond / turnsMean).map((began, n) => {
    const turns: Turn[] = [];
    let at = began;
    do {
      const isFirst = turns.length === 0;
      const tokens = lognormal(random, isFirst ? 5_200 : 450, isFirst ? 1.2 : 1.4, 30, isFirst ? 90_000 : 15_000);
      const user: Part = { role: "user", seed: `talk ${seed} ${n} ${turns.length}`, tokens };
      const system: Part = { role: "system", seed: "assistant", tokens: 512 };
      turns.push({ at, parts: isFirst ? [system, user] : [user], output: lognormal(random, 260, 0.9, 2, 600) });
      at += 5_000 + exponential(random, 25_000);
    } while (random() < 1 - 1 / turnsMean);
    return session(`talk-${n}`, `a${Math.floor(random() * accounts)}`, turns);
  });
}

/** Mooncake's own trace (kvcache-ai/Mooncake, Apache-2.0), which names blocks of 512 tokens by number and no people. */
function recorded(file: string, endMs: Ms, accounts: number): Session[] {
  type Line = Readonly<{ timestamp: Ms; input_length: number; output_length: number; hash_ids: readonly number[] }>;
  const lines = readFileSync(file, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Line);
  const fromMs = 600_000;
  const picked = lines.filter(({ timestamp }) => timestamp >= fromMs && timestamp < fromMs + endMs);
  return picked.map(({ timestamp, input_length, output_length, hash_ids }, n) => {
    const talk = hash_ids[1] ?? hash_ids[0]!;
    const parts = hash_ids.map((id, at): Part => {
      const tokens = Math.min(512, input_length - 512 * at);
      return { role: at === 0 ? "system" : "user", seed: `block ${id}`, tokens };
    });
    // Its times are whole seconds times three, so that many requests come in the same moment.
    const at = timestamp - fromMs + 100 * (n % 8);
    const account = Bun.hash.xxHash32(`${talk}`) % accounts;
    return session(`${talk}-${n}`, `a${account}`, [{ at, parts, output: Math.min(600, Math.max(2, output_length)) }]);
  });
}

/** So many requests of an account at once, all the time. */
export function pile(count: number, prompt: number, output: number, more: Partial<Session>): Session[] {
  return Array.from({ length: count }, (_none, n) => {
    const parts: Part[] = [{ role: "user", seed: `pile ${n} ${prompt}`, tokens: prompt }];
    const closed = { restMs: 0, isFresh: true, repeats: true };
    return session(`pile-${n}`, "greedy", [{ at: 0, parts, output }], { ...closed, ...more });
  });
}

/** So many people, each with a short question at so regular a time. */
function small(count: number, endMs: Ms, everyMs: Ms, more: (n: number) => Partial<Session>): Session[] {
  return Array.from({ length: count }, (_none, n) => {
    const first = 5_000 + (everyMs * n) / count;
    return Array.from({ length: Math.max(0, Math.ceil((endMs - first) / everyMs)) }, (_turn, turn) => {
      const parts: Part[] = [{ role: "user", seed: `small ${n} ${turn}`, tokens: 600 }];
      const at = first + turn * everyMs;
      return session(`small-${n}-${turn}`, `small-${n}`, [{ at, parts, output: 100 }], more(n));
    });
  }).flat();
}

const alike = (count: number): NodeShape[] => Array.from({ length: count }, () => ({ speed: 1, models: [usualModel] }));
const ofModel = (model: string, sessions: readonly Session[]): Session[] =>
  sessions.map((one) => ({ ...one, id: `${model}-${one.id}`, model }));

type Made = Readonly<{ sessions: readonly Session[] }> & Partial<Pick<Trace, "nodes" | "faults" | "judged">>;

const isNoPile = ({ id }: Session): boolean => !id.startsWith("pile-");

/** `-one-key`: a program's key serves everyone. */
const makers: Readonly<Record<string, (seed: number, endMs: Ms) => Made>> = {
  chats: (seed, endMs) => ({ sessions: chats(seed, endMs, 40, 60) }),
  "chats-one-key": (seed, endMs) => ({ sessions: chats(seed, endMs, 40, 1) }),
  agents: (seed, endMs) => ({ sessions: agents(seed, endMs, 24, 12) }),
  "agents-one-key": (seed, endMs) => ({ sessions: agents(seed, endMs, 24, 1) }),
  "rag-one-key": (seed, endMs) => ({ sessions: rag(seed, endMs, 12, 1) }),
  skewed: (seed, endMs) => ({ sessions: chats(seed, endMs, 40, 40, 0.7) }),
  churn: (seed, endMs) => ({
    sessions: chats(seed, endMs, 30, 60),
    faults: [
      { at: 0.3 * endMs, node: 1, what: "down" },
      { at: 0.55 * endMs, node: 1, what: "up" },
      { at: 0.75 * endMs, node: 2, what: "cold" },
    ],
  }),
  "mooncake-like": (seed, endMs) => ({ nodes: alike(8), sessions: mooncakeLike(seed, endMs, 5, 200) }),
  unequal: (seed, endMs) => ({
    nodes: [2, 1, 0.5, 0.5].map((speed) => ({ speed, models: [usualModel] })),
    sessions: [...agents(seed, endMs, 16, 8), ...chats(seed, endMs, 15, 40)],
  }),
  "two-models": (seed, endMs) => ({
    nodes: [["a"], ["a"], ["a"], ["a", "b"], ["b"], ["b"]].map((models) => ({ speed: 1, models })),
    sessions: [...ofModel("a", agents(seed, endMs, 22, 11)), ...ofModel("b", chats(seed, endMs, 25, 40))],
  }),
  "hot-document": (seed, endMs) => ({
    sessions: [...chats(seed, endMs, 25, 60), ...hotDocument(seed, 0.3 * endMs, endMs, 8, 60)],
  }),
  "small-beside-greedy": (_seed, endMs) => ({
    sessions: [...pile(500, 3_000, 300, {}), ...small(10, endMs, 2_000, () => ({}))],
    judged: isNoPile,
  }),
  "rare-beside-greedy": (_seed, endMs) => ({
    sessions: [...pile(500, 3_000, 300, {}), ...small(10, endMs, 60_000, () => ({}))],
    judged: isNoPile,
  }),
  "interactive-beside-bulk": (_seed, endMs) => ({
    sessions: [
      ...pile(500, 3_000, 300, { priority: "bulk" }),
      ...small(10, endMs, 2_000, () => ({ priority: "interactive" })),
    ],
    judged: isNoPile,
  }),
  "fifty-users-one-key": (_seed, endMs) => ({
    sessions: [
      ...pile(300, 3_000, 300, { account: "house", user: "greedy" }),
      ...small(49, endMs, 8_000, (n) => ({ account: "house", user: `person-${n}` })),
    ],
    judged: isNoPile,
  }),
};
export const traceNames: readonly string[] = Object.keys(makers);

/** `file`: Mooncake's own trace, for the name "mooncake". Throws for an unknown name. */
export function traceNamed(name: string, seed: number, seconds: number, file = ""): Trace {
  const endMs = 1_000 * seconds;
  const maker =
    name === "mooncake" && file !== ""
      ? (): Made => ({ nodes: alike(8), sessions: recorded(file, endMs, 200) })
      : makers[name];
  if (maker === undefined) throw new Error(`the traces are ${traceNames.join(", ")}, not "${name}"`);
  const { sessions, nodes = alike(4), faults = [], judged = null } = maker(seed, endMs);
  return { name, nodes, sessions: sessions.filter(({ turns }) => turns[0]!.at < endMs), faults, judged, endMs };
}

/** Those who are judged, without what they meet. */
export function alone(trace: Trace): Trace {
  return { ...trace, sessions: trace.sessions.filter((one) => trace.judged?.(one) ?? true), judged: null };
}

/** What those who are judged meet. */
export function others({ judged, ...trace }: Trace): Trace {
  return { ...trace, sessions: trace.sessions.filter((one) => judged?.(one) === false), judged: null };
}

const texts = new Map<string, string>();
function textOfPart({ seed, tokens }: Part, salt: string): string {
  if (salt !== "") return textOf(`${seed} ${salt}`, tokens);
  const key = `${seed}/${tokens}`;
  let text = texts.get(key);
  if (text === undefined) texts.set(key, (text = textOf(seed, tokens)));
  return text;
}

/** What a turn adds; parts of one role in a row are one message. `salt` makes its texts others. */
export function messagesOf({ parts }: Turn, salt: string): Message[] {
  const messages: Message[] = [];
  for (const part of parts) {
    const content = textOfPart(part, salt);
    const last = messages.at(-1);
    if (last?.role === part.role) messages[messages.length - 1] = { ...last, content: last.content + content };
    else messages.push({ role: part.role, content });
  }
  return messages;
}
