// tollgate init: finds engines, asks at most six questions and writes a commented configuration. Each question has a default
// and a flag, so that it also runs where nobody answers.
import { networkInterfaces } from "node:os";
import { catalogOf, configuredCatalog } from "../config/configured-catalog.ts";
import { type Environment, readConfig } from "../config/config.ts";
import type { NodeConfig } from "../config/config.ts";
import { systemClock } from "../core/clock.ts";
import { CommandError, isExpected } from "../core/expected-error.ts";
import { diffInWords, lineDiff } from "../core/line-diff.ts";
import { namesThisMachine } from "../core/this-machine.ts";
import { tomlText } from "../core/toml-text.ts";
import { visible } from "../core/visible.ts";
import { engineAddresses } from "../nodes/engine-addresses.ts";
import { type Engine, engineInWords } from "../nodes/engine.ts";
import { lookOnce } from "../nodes/inspect.ts";
import { problemWith } from "../office/verb.ts";
import { invite } from "../office/verbs/accounts.ts";
import { suggestedModels, type Suggestion, suggestionText } from "../server/fleet/suggested-models.ts";
import { type Flags, type Invocation, textFlag, UsageError } from "./command.ts";
import doctor from "./doctor.ts";
import { reportOf } from "./models-report.ts";
import { perform } from "./perform.ts";

/** For one engine; a host that is off must not keep a network waiting. */
const answerMs = 1_000;
const hostsAtOnce = 32;
/** A network of more hosts is not looked through. */
const networkBitsMin = 24;
/** So that one token of a model takes one of a plan's daily tokens, of which a dollar has 200,000. */
const dollarsPerToken = 5;

type Found = Readonly<{ node: NodeConfig; engine: Engine; keyVariable: string | null }>;

/** What `serve` gets to start with, or the exit code. */
export default async function init({ flags, environment }: Invocation): Promise<Invocation | number> {
  const isAsking = flags["yes"] !== true;
  if (isAsking && process.stdin.isTTY !== true) {
    throw new UsageError("init: asks questions, and no terminal is here to answer them: --yes takes the defaults");
  }
  const { ask, asked } = asking(flags, isAsking);
  const file = textFlag(flags, "config") ?? (environment["TOLLGATE_CONFIG"] || "tollgate.toml");

  const found = await engines(flags, environment, asked);
  for (const { node, engine } of found) console.log(`  ${node.url}: ${engineInWords(engine)}`);
  const nodes = `# ---- Engines\n\n${namesTogether(found)}`;
  const suggestion = await suggested(file, nodes, found, environment);
  const ids = suggestion.models.map(({ id }, at) => `  ${at + 1}  ${id}`).join("\n");
  const which = `Which models?\n${ids}\nNumbers or names, with commas`;
  const models = await asked("models", which, "all", (typed) => chosenModels(suggestion, typed));
  const much = "How much may each person use? unlimited, or tokens a day such as 2000000";
  const plan = await asked("plan", much, "unlimited", planOf);
  const who = "Who should reach it? here (this machine), network, or the address of your proxy";
  const server = await asked("address", who, "here", serverText);
  const people = await asked("people", "Whom to invite? E-mail addresses, with commas", "nobody", peopleOf);

  const priced = models.map((model) => ({ ...model, price: model.price ?? plan.price }));
  const own = suggestionText({ ...suggestion, models: priced }, { models: [], nodes: [], mcp: [] }, ["team"]);
  const text = [headOf(file), server, nodes, plan.text, `# ---- Models\n${own.slice(own.indexOf("\n"))}`]
    .join("\n\n")
    .concat("\n");
  readConfig(file, text, {}, environment);
  const before = await Bun.file(file)
    .text()
    .catch(() => null);
  if (before !== null && before !== text) {
    console.log(`\n${file} is there. What would change:\n${diffInWords(lineDiff(before, text))}`);
    if (flags["replace"] !== true && !isYes(await ask(`Replace ${file}?`, "no"))) {
      throw new CommandError(`${file} stays as it was${isAsking ? "" : ": --replace writes over it"}`);
    }
  }
  await Bun.write(file, text);
  console.log(`\n${before === null ? "Made" : "Wrote"} ${file}. What doctor says:`);
  const given = { words: [], flags: { config: file, data: flags["data"] }, environment };
  const code = await doctor(given);
  for (const email of people) {
    const { link } = await perform(given, { ...invite, makesFolder: true }, { email });
    console.log(`\nFor ${email}, valid for 7 days, once the server runs: ${link}`);
  }
  // Where the file was there, its question was the sixth.
  const starts = flags["start"] === true || (isAsking && before === null && isYes(await ask("Start it now?", "yes")));
  if (starts) return given;
  const data = textFlag(flags, "data");
  console.log(`\nStart it: tollgate serve --config ${file}${data === undefined ? "" : ` --data ${data}`}`);
  return code;
}

function asking(flags: Flags, isAsking: boolean): Readonly<{ ask: Ask; asked: Asked }> {
  const lines = isAsking ? console[Symbol.asyncIterator]() : null; // `prompt` takes a closed terminal for an empty line
  const ask: Ask = async (question, otherwise) => {
    if (lines === null) return otherwise;
    process.stdout.write(visible(`\n${question} [${otherwise}] `));
    const { value, done = false } = await lines.next();
    if (done) throw new CommandError("init ended here: the terminal has no more answers");
    return value.trim() || otherwise;
  };
  /** Asks again what was not understood. */
  const asked: Asked = async (flag, question, otherwise, read) => {
    const given = textFlag(flags, flag);
    for (let tries = 1; ; tries++) {
      const typed = given ?? (await ask(question, otherwise));
      try {
        return await read(typed);
      } catch (error) {
        if (!isAsking || given !== undefined || tries === 3 || !isExpected(error)) throw error;
        console.log(`${(error as Error).message}.`);
      }
    }
  };
  return { ask, asked };
}

const isYes = (typed: string): boolean => /^y(?:es)?$/i.test(typed);

// ---------------------------------------------------------------- engines

type Ask = (question: string, otherwise: string) => Promise<string>;
type Asked = <Value>(
  flag: string,
  question: string,
  otherwise: string,
  read: (typed: string) => Value | Promise<Value>,
) => Promise<Value>;

async function engines(flags: Flags, environment: Environment, asked: Asked): Promise<readonly Found[]> {
  const named = flags["node"] as readonly string[] | undefined;
  const keyVariable = textFlag(flags, "api-key-env") ?? null;
  if (named !== undefined) return enginesAt(named, keyVariable, environment);
  console.log("Looking for engines on this machine ...");
  const here = await enginesAt(await engineAddresses("127.0.0.1", answerMs), null, environment);
  if (here.length === 0) console.log("  none answers at a usual port");
  const where = "Engines elsewhere? addresses, hosts or networks, such as http://gpu-1:8000/v1, gpu-2 or 10.0.0.0/24";
  const others = await asked("node", where, "none", async (typed) => {
    const more = await enginesAt(typed === "none" ? [] : listed(typed), keyVariable, environment);
    if (here.length + more.length > 0) return more;
    throw new CommandError(
      "no engine was found: start one, or name it with --node URL. Without any, `tollgate serve` answers with a demo node",
    );
  });
  return [...here, ...others.filter(({ node }) => here.every((one) => one.node.url !== node.url))];
}

const listed = (typed: string): string[] => typed.split(/[\s,]+/).filter((each) => each !== "");

/** Throws CommandError for a place where no engine answers. */
async function enginesAt(places: readonly string[], keyVariable: string | null, environment: Environment) {
  const addresses: string[] = [];
  for (const place of places) {
    const isAddress = /^https?:\/\//.test(place) || /:\d+(?:\/|$)/.test(place);
    if (isAddress) addresses.push(place.includes("://") ? place : `http://${place}`);
    else addresses.push(...(await addressesIn(place)));
  }
  const key = keyVariable === null ? null : (environment[keyVariable] ?? null);
  if (keyVariable !== null && key === null) throw new CommandError(`the variable ${keyVariable} is not set`);
  if (addresses.length === 0) return [];
  const nodes = readConfig(null, "", { node: [...new Set(addresses)] }, {}).nodes;
  return Promise.all(
    nodes.map(async (node): Promise<Found> => {
      const { url } = node;
      const look = await lookOnce({ ...node, apiKey: key }, systemClock);
      if (look?.engine) return { node, engine: look.engine, keyVariable };
      const hint = look?.problem?.includes("API key") ? ": name its variable with --api-key-env NAME" : "";
      throw new CommandError(`${url}: ${look?.problem?.split(": give it")[0] ?? "it does not answer"}${hint}`);
    }),
  );
}

/** Of a host, or of all hosts of a network such as 10.0.0.0/24. */
async function addressesIn(place: string): Promise<string[]> {
  const [, base, bits] = /^(\d+\.\d+\.\d+\.\d+)\/(\d+)$/.exec(place) ?? [];
  if (base === undefined || bits === undefined) {
    if (!URL.canParse(`http://${place}/`)) throw new CommandError(`${place} is no address, host or network`);
    const found = await engineAddresses(place, answerMs);
    if (found.length === 0) throw new CommandError(`no engine answers on ${place} at a usual port: give its address`);
    return found;
  }
  if (Number(bits) < networkBitsMin || Number(bits) > 32) {
    throw new CommandError(`${place} has too many hosts: name a network of /${networkBitsMin} or smaller`);
  }
  const count = 2 ** (32 - Number(bits));
  const first = base.split(".").reduce((sum, part) => sum * 256 + Number(part), 0);
  const start = first - (first % count);
  const hosts = Array.from({ length: count }, (_, at) =>
    [24, 16, 8, 0].map((shift) => Math.floor((start + at) / 2 ** shift) % 256).join("."),
  );
  console.log(`Looking at the ${count} addresses of ${place} ...`);
  const found: string[] = [];
  while (hosts.length > 0) {
    const some = await Promise.all(hosts.splice(0, hostsAtOnce).map((host) => engineAddresses(host, answerMs)));
    found.push(...some.flat());
  }
  return found;
}

/** Rows of [[nodes]]: an engine of this machine is called by its kind, one elsewhere by its host. */
function namesTogether(found: readonly Found[]): string {
  const names = new Map<string, number>();
  const rows = found.map(({ node: { url }, engine, keyVariable }) => {
    const { hostname } = new URL(url);
    const kind = engine.kind === "unknown" ? "engine" : engine.kind;
    const plain = namesThisMachine(hostname) ? kind : hostname.replaceAll(/[^A-Za-z0-9.-]/g, "").slice(0, 60);
    const count = (names.get(plain) ?? 0) + 1;
    names.set(plain, count);
    return [
      "[[nodes]]",
      `name = ${tomlText(count === 1 ? plain : `${plain}-${count}`)}`,
      `url = ${tomlText(url)}  # ${visible(engineInWords(engine)).replaceAll("\n", " ")}`,
      keyVariable === null
        ? '# api_key_env = "NODE_KEY"  # the variable that has its key'
        : `api_key_env = ${tomlText(keyVariable)}`,
      "# slots = 4  # requests that it runs at once; the others wait in a fair line",
    ].join("\n");
  });
  return rows.join("\n\n");
}

// ---------------------------------------------------------------- the other answers

async function suggested(file: string, text: string, found: readonly Found[], environment: Environment) {
  const config = readConfig(file, text, {}, environment);
  const seen = config.nodes.map(({ name, models }, at) => ({ name, models, engine: found[at]!.engine, isWell: true }));
  return suggestedModels(reportOf(config, configuredCatalog(config, await catalogOf(config)), seen), config);
}

function chosenModels({ models }: Suggestion, typed: string): Suggestion["models"] {
  if (models.length === 0) throw new CommandError("the engines list no model: load one");
  if (typed === "all") return models;
  return listed(typed).map((each) => {
    const found = models.find(({ id }) => id === each) ?? models[Number(each) - 1];
    if (found === undefined) throw new CommandError(`there is no model ${JSON.stringify(each)}`);
    return found;
  });
}

const planHead = '# ---- Plans: what an account may use\n\n[[plans]]\nid = "team"';

function planOf(typed: string) {
  if (typed === "unlimited") {
    const about = "usage is recorded and nothing is refused; or a daily amount: tokens_per_day = 2000000";
    return { text: `${planHead}\nunlimited = true  # ${about}`, price: null };
  }
  const amount = /^[1-9]\d{0,11}$/.test(typed) ? typed : null;
  if (amount === null) throw new CommandError("the plan is unlimited, or a number of tokens a day such as 2000000");
  const price = { input: dollarsPerToken, cached: dollarsPerToken, output: dollarsPerToken };
  const about = "for each account; at a price of 5 one token of a model takes one of them";
  return { text: `${planHead}\ntokens_per_day = ${amount}  # ${about}`, price };
}

function serverText(typed: string): string {
  const lines = (host: string, base: string) => [
    "[server]",
    `host = ${tomlText(host)}  # the address to listen on; 0.0.0.0: every network of this machine`,
    "# port = 8400",
    base,
  ];
  const about = "  # the address that clients and browsers use";
  if (typed === "here") return lines("127.0.0.1", `# base_url = "https://llm.example.org"${about}`).join("\n");
  if (typed === "network") {
    const all = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
    const address = all.find(({ family, internal }) => family === "IPv4" && !internal)?.address;
    if (address === undefined) throw new CommandError("this machine has no address in a network");
    return lines("0.0.0.0", `base_url = ${tomlText(`http://${address}:8400`)}${about}`).join("\n");
  }
  if (!URL.canParse(typed) || !/^https?:/.test(typed)) {
    throw new CommandError("the address is here, network, or a proxy's such as https://llm.example.org");
  }
  const proxy = '\n[console]\naddress_header = "x-forwarded-for"  # in which the proxy says where a browser is';
  return [...lines("127.0.0.1", `base_url = ${tomlText(typed)}${about}`), proxy].join("\n");
}

function peopleOf(typed: string): readonly string[] {
  const people = typed === "nobody" ? [] : listed(typed);
  const wrong = people.find((email) => !/^[^@\s]+@[^@\s]+$/.test(email) || problemWith(invite, { email }) !== null);
  if (wrong !== undefined) throw new CommandError(`${JSON.stringify(wrong)} is no e-mail address`);
  return people;
}

const headOf = (file: string): string =>
  [
    "# The configuration of Tollgate, as `tollgate init` made it. What stands behind # is an example, or what holds without it.",
    `# Start: tollgate serve --config ${file}. Apply changes while it runs: tollgate reload. Every key: tollgate help config.`,
  ].join("\n");
