// Kills the gateway with SIGKILL at random moments under load, starts it again on the same folder, and compares what
// is on disk with what the clients saw. The expected charges are computed here from the usage that a client was given
// and the specification's prices; nothing of the gateway's own arithmetic is used.
import type { AccountState, KeyState, UsageRow } from "../fixtures/gateway-process.ts";
import { GatewayProcess } from "../fixtures/gateway-process.ts";
import { billedTokens, bodyOf, budgetField, endpoints, type ToldUsage, viewOf } from "../fixtures/client-view.ts";
import { eventually } from "../fixtures/eventually.ts";
import { ScriptedNode } from "../fixtures/node-process.ts";
import { randomOf } from "../fixtures/random.ts";
import { finish, once, text } from "../fixtures/scripts.ts";
import { traced } from "../fixtures/strace.ts";
import { nodeTable } from "../fixtures/stack.ts";

export type CrashOptions = Readonly<{
  rounds: number;
  seed: number;
  clients: number;
  accounts: number;
  /** SIGTERM: an orderly stop, after which no reply may have been cut. */
  signal?: "SIGKILL" | "SIGTERM";
  /** What the system does to the process in a round: arguments of strace, by chance. */
  inject?: (below: (limit: number) => number) => readonly string[];
}>;

export type CrashReport = Readonly<{
  rounds: number;
  seed: number;
  killsWhileStarting: number;
  /** Rounds in which the process had ended before it was killed. */
  endedByItself: number;
  requests: number;
  /** Replies that a client received to their end, in all and by dialect and way. */
  complete: number;
  ways: Readonly<Record<string, number>>;
  /** Requests that had a reply's head and were cut. */
  cut: number;
  rows: number;
  /** Charges of requests whose client did not see the end: on disk before the crash, as they may be. */
  chargedUnseen: number;
  /** Every contradiction, in words; empty when all is well. */
  wrong: readonly string[];
}>;

const models = ["core-3", "core-1.6-pro", "core-2-pro", "open-01-3BIT-REAP", "open-03-3BIT-REAP", "open-05-3BIT-REAP"];
const creditTokens = 100_000_000;
const narrowLimit = 40_000;
/** Of prompt and output below, at the dearest model's price for output. Their bodies say nothing of these prompts. */
const dearestRequest = Math.ceil((3_500 * 1_912) / 500);

/** `usage` is what the client was told; null unless the reply is whole. */
type Seen = Readonly<{ way: string; key: string; usage: ToldUsage | null; endUser?: string | null }>;

/** Everything that the clients of one account know. */
type Oracle = {
  email: string;
  /** The first key, one with limits that nobody reaches, and one with a limit that is soon used up. */
  keys: readonly Readonly<{ name: string; key: string }>[];
  /** The second one says for whom it asks. */
  namesUsers?: boolean;
  /** By request id. */
  seen: Map<string, Seen>;
  /** Requests that were cut before their id came. */
  anonymous: number;
};

export async function crash({
  rounds,
  seed,
  clients,
  accounts,
  signal = "SIGKILL",
  inject,
}: CrashOptions): Promise<CrashReport> {
  const random = randomOf(seed);
  const below = (limit: number): number => Math.floor(random() * limit);
  const wrong: string[] = [];
  let requests = 0;
  let killsWhileStarting = 0;
  let endedByItself = 0;

  await using node = await ScriptedNode.start();
  const scriptCount = 8;
  for (let i = 0; i < scriptCount; i++) {
    const prompt = 1 + below(3_000);
    const output = 1 + below(500);
    const usage = {
      prompt_tokens: prompt,
      completion_tokens: output,
      total_tokens: prompt + output,
      prompt_tokens_details: { cached_tokens: below(prompt + 1) },
    };
    const steps = [...text("a "), { waitMs: below(40) }, ...text("b ", "c "), { waitMs: below(40) }];
    await node.define(`crash-${i}`, once(steps, finish("stop", usage)));
  }
  await using gateway = await GatewayProcess.start({ config: nodeTable(node, 1_000) });
  const oracles: Oracle[] = [];
  for (let i = 0; i < accounts; i++) {
    const { email, api_key } = await gateway.account(creditTokens);
    const namesUsers = i % 2 === 1;
    const limits = { limit_day: 1e9, limit_month: 2e9, ...(namesUsers ? { forwards_users: true } : {}) };
    const wide = await gateway.makeKey(email, { name: "wide", ...limits });
    const narrow = await gateway.makeKey(email, { name: "narrow", limit_day: narrowLimit });
    const keys = Object.entries({ default: api_key, wide: wide.api_key, narrow: narrow.api_key });
    oracles.push({
      email,
      keys: keys.map(([name, key]) => ({ name, key })),
      namesUsers,
      seen: new Map(),
      anonymous: 0,
    });
  }

  for (let round = 1; round <= rounds; round++) {
    const running = new AbortController();
    const load = Array.from({ length: clients }, (_, i) => client(oracles[i % accounts]!, running.signal));
    await Bun.sleep(200 + below(1_200));
    const { ended } = gateway;
    const exitCode = await gateway.kill(signal);
    if (ended) endedByItself++;
    if (ended && exitCode !== null && exitCode !== 1) wrong.push(`round ${round}: it ended with ${exitCode}`);
    if (signal === "SIGTERM" && exitCode !== 0) wrong.push(`round ${round}: a stop ended with ${exitCode}`);
    running.abort();
    await Promise.all(load);
    if (signal === "SIGKILL" && random() < 0.25) {
      killsWhileStarting++;
      await gateway.crashWhileStarting(below(250));
    }
    await startAgain();
    const everything = round % 10 === 0 || round === rounds;
    for (const oracle of everything ? oracles : [oracles[below(accounts)]!])
      await surviving(() => verify(oracle, round));
  }

  const rows = await surviving(rowsOfAll);
  const seen = oracles.flatMap((oracle) => [...oracle.seen.values()]);
  const whole = seen.filter(({ usage }) => usage !== null);
  return {
    rounds,
    seed,
    killsWhileStarting,
    endedByItself,
    requests,
    complete: whole.length,
    ways: Object.fromEntries([...Map.groupBy(whole, ({ way }) => way)].map(([way, each]) => [way, each.length]).sort()),
    cut: seen.length - whole.length,
    rows,
    chargedUnseen: rows - whole.length,
    wrong,
  };

  /** Under the next injection, which it may not survive; then without. */
  async function startAgain(): Promise<void> {
    if (inject === undefined) return gateway.restart();
    try {
      await gateway.restart(traced("-o", "/dev/null", ...inject(below)));
    } catch (thrown) {
      // A traced process that was killed may hold its lock for a moment longer. Else it ended before it listened: as meant.
      if (!String(thrown).includes("is in use")) killsWhileStarting++;
      await startPlain();
    }
  }

  async function startPlain(): Promise<void> {
    await eventually("the data folder is free", () =>
      gateway.restart().then(
        () => true,
        () => false,
      ),
    );
  }

  /** What is written beside the ledger is flushed after the start: then the injection may hit while the books are read. */
  async function surviving<T>(look: () => Promise<T>): Promise<T> {
    try {
      return await look();
    } catch (thrown) {
      if (inject === undefined) throw thrown;
      // The connections of one that was killed are gone a moment before its tracer is.
      const { code } = thrown as NodeJS.ErrnoException;
      if (code === "ECONNRESET") await eventually("it has ended", () => Promise.resolve(gateway.ended));
      if (!gateway.ended) throw thrown;
      endedByItself++;
      await startPlain();
      return look();
    }
  }

  async function rowsOfAll(): Promise<number> {
    let count = 0;
    for (const { email } of oracles) count += (await gateway.usage(email, 1_000_000)).length;
    return count;
  }

  /** One client: asks again and again until the gateway is gone, and logs what it saw. */
  async function client(oracle: Oracle, cancelSignal: AbortSignal): Promise<void> {
    while (!cancelSignal.aborted) {
      const model = models[below(models.length)]!;
      const endpoint = endpoints[below(endpoints.length)]!;
      const stream = random() < 0.5;
      // The last one is soon refused, and what is refused counts for the account's window.
      const { name, key } = oracle.keys[below(8) === 0 ? 2 : below(2)]!;
      const prompt = `[[crash-${below(scriptCount)}]]`;
      const endUser = below(3) === 0 ? null : `person ${below(20)}`;
      const naming =
        endUser === null ? {} : endpoint === "/v1/messages" ? { metadata: { user_id: endUser } } : { user: endUser };
      requests++;
      let reply: Response;
      try {
        reply = await fetch(gateway.url + endpoint, {
          method: "POST",
          headers: { authorization: `Bearer ${key}` },
          body: JSON.stringify(bodyOf(endpoint, model, prompt, { stream, [budgetField[endpoint]]: 1_000, ...naming })),
        });
      } catch {
        oracle.anonymous++;
        return; // the gateway was killed
      }
      const id = reply.headers.get("x-request-id") ?? "";
      const body = await readUntilCut(reply);
      if (reply.status === 429 && body.includes("Quota exceeded for the API key") && name === "narrow") continue;
      if (reply.status === 429) return; // the account's window is used up; the others go on
      if (reply.status !== 200) {
        wrong.push(`a request was answered ${reply.status}: ${body.slice(0, 200)}`);
        return;
      }
      const view = viewOf(endpoint, stream, body);
      const usage = view.complete ? view.usage : null;
      if (oracle.seen.has(id)) wrong.push(`two replies carry the id ${id}`);
      const way = `${endpoint} ${stream ? "stream" : "whole"}`;
      const isNamed = oracle.namesUsers === true && name === "wide";
      oracle.seen.set(id, { way, key: name, usage, endUser: isNamed ? endUser : null });
      if (view.error !== null) wrong.push(`${id} failed: ${view.error.message}`);
      if (usage === null) return;
    }
  }

  async function verify(oracle: Oracle, round: number): Promise<void> {
    const rows = await gateway.usage(oracle.email, 1_000_000);
    const state = await gateway.show(oracle.email);
    const keys = await gateway.keys(oracle.email);
    const endUsers = await gateway.cli<EndUser[]>("end-users", "list", oracle.email);
    for (const sentence of [
      ...contradictions(oracle, rows, state),
      ...keyContradictions(rows, keys, clients / accounts),
      ...contradictionsOfUsers(rows, endUsers),
    ])
      wrong.push(`round ${round}, ${oracle.email}: ${sentence}`);
  }
}

/** `end-users list --json` */
type EndUser = Readonly<{ name: string; last_day: string; used_last_day: number }>;

/** What is known of end users and does not follow from the journal's lines. */
function contradictionsOfUsers(rows: readonly UsageRow[], endUsers: readonly EndUser[]): string[] {
  const wrong: string[] = [];
  for (const { name, last_day, used_last_day } of endUsers) {
    if (name === "") continue; // rows of other keys name nobody either
    const own = rows.filter(({ end_user, time }) => end_user === name && time.startsWith(last_day));
    const sum = own.reduce((total, { billed_tokens }) => total + billed_tokens, 0);
    if (sum !== used_last_day) wrong.push(`${name} used ${used_last_day} on ${last_day}, the journal says ${sum}`);
  }
  const known = new Set(endUsers.map(({ name }) => name));
  for (const { end_user = null, request_id } of rows) {
    if (end_user !== null && !known.has(end_user)) wrong.push(`${request_id} is for ${end_user}, whom nobody knows`);
  }
  return wrong;
}

/** What does not fit between an account's clients, its usage rows and its balance. */
export function contradictions(oracle: Oracle, rows: readonly UsageRow[], state: AccountState): string[] {
  const wrong: string[] = [];
  const byId = Map.groupBy(rows, ({ request_id }) => request_id);
  for (const [id, { length }] of byId) if (length > 1) wrong.push(`${id} was charged ${length} times`);
  for (const [id, { key, usage, endUser }] of oracle.seen) {
    const row = byId.get(id)?.[0];
    if (row !== undefined && endUser !== undefined && row.end_user !== endUser) {
      wrong.push(`${id} was for ${endUser}, on disk it is for ${row.end_user}`);
    }
    if (usage !== null && row === undefined) wrong.push(`${id} was seen complete and has no charge`);
    if (row !== undefined && row.key !== key) wrong.push(`${id} came by ${key} and is charged to ${row.key}`);
    if (row !== undefined && usage !== null) {
      const told = [usage.input, usage.output, usage.cached ?? row.cached_input];
      const written = [row.input, row.output, row.cached_input];
      if (told.join() !== written.join()) wrong.push(`${id}: the client was told ${told}, on disk is ${written}`);
    }
  }
  const unknown = rows.filter(({ request_id }) => !oracle.seen.has(request_id)).length;
  if (unknown > oracle.anonymous) wrong.push(`${unknown} charges, but only ${oracle.anonymous} requests without an id`);

  let total = 0;
  for (const row of rows) {
    const expected = billedTokens(row);
    if (row.billed_tokens !== expected)
      wrong.push(`${row.request_id}: billed ${row.billed_tokens}, expected ${expected}`);
    total += expected;
  }
  if (state.reserved !== 0) wrong.push(`${state.reserved} tokens are reserved`);
  const { granted, left } = state.allowance;
  // the allowance is spent first; a run over midnight (UTC) has had two
  const overMidnight = rows.some((row) => row.time.slice(0, 10) !== state.allowance.day);
  const fromAllowance = overMidnight ? null : Math.min(total, granted);
  if (fromAllowance !== null && granted - left !== fromAllowance) {
    wrong.push(`${granted - left} of the allowance are spent, expected ${fromAllowance}`);
  }
  if (fromAllowance !== null && creditTokens - state.credit !== total - fromAllowance) {
    wrong.push(`${creditTokens - state.credit} of the credit are spent, expected ${total - fromAllowance}`);
  }
  return wrong;
}

/** What a key used is the sum of its rows, and no more than its limit and what ran at once. */
export function keyContradictions(rows: readonly UsageRow[], keys: readonly KeyState[], atOnce: number): string[] {
  return keys.flatMap(({ name, used_day, used_month, limit_day }) => {
    if (used_day === null || used_month === null) return []; // the first one, which has no limits
    // A run over midnight (UTC) has had two days, and one over the end of a month two months.
    const ofKey = rows.filter((row) => row.key === name);
    const today = new Date().toISOString().slice(0, 10);
    const sums = [today, today.slice(0, 7)].map((date) =>
      ofKey.filter(({ time }) => time.startsWith(date)).reduce((sum, row) => sum + row.billed_tokens, 0),
    );
    return [
      ...(sums.join() === `${used_day},${used_month}`
        ? []
        : [`${name} used ${used_day},${used_month}, its rows say ${sums}`]),
      ...(used_day <= (limit_day ?? Infinity) + atOnce * dearestRequest
        ? []
        : [`${name} used ${used_day} of ${limit_day}`]),
    ];
  });
}

/** What arrived before the connection broke, if it did. */
async function readUntilCut(reply: Response): Promise<string> {
  const decoder = new TextDecoder();
  let body = "";
  try {
    for await (const bytes of reply.body ?? []) body += decoder.decode(bytes, { stream: true });
  } catch {
    // cut: the gateway was killed in the middle of this reply
  }
  return body;
}
