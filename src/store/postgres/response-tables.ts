// Reads and writes stored responses in PostgreSQL. Locks are taken in one order: an account's row of sums first, which also
// says that nothing is kept for it anymore. What a request refers to is read, and found in a table in memory by the code that
// does it for SQLite (`../responses/stored-responses-table.ts`).
import { Database as Memory } from "bun:sqlite";
import {
  type EarlierTexts,
  isOfInput,
  type ItemPage,
  responseIdOf,
  responseText,
} from "../../dialects/stored-responses.ts";
import { assert } from "../../core/assert.ts";
import { journalGiveUpMs } from "../limits.ts";
import { isRefusal, refuse } from "../../core/refusals.ts";
import { type AccountId, type Ms, type Refusal, StoreUnavailable } from "../../core/types.ts";
import {
  answerOf,
  conversationBytes,
  conversationFull,
  conversed,
  type KeptConversation,
  type NotAdded,
  notAdded,
  type ConversationStep,
} from "../responses/conversations.ts";
import type { KeptResponse } from "../responses/kept-text.ts";
import { type StoredResponseLimits, StoredResponseTable } from "../responses/stored-responses-table.ts";
import { openStoredResponses } from "../responses/stored-responses-file.ts";
import { type Question, type Send, statement } from "../questions.ts";
import { sendIn } from "./database.ts";
import { arrayOf, call, type Call, StatementError } from "./connection.ts";
import type { Database, Session } from "./database.ts";
import { batchLockMs, retryFirstMs, retryMostMs } from "./limits.ts";
import { systemPace } from "./pace.ts";

/** A conversation may be read as 32 MiB of text, and a response written so; longer than the end of a reply waits for its charge. */
const limitMs = 15_000;
const expirySlice = 100;
/** A character is at most three bytes for each of the units that JavaScript counts. */
const bytesPerUnitMax = 3;

type Row = Readonly<{
  id: string;
  previous_id: string | null;
  kept_at: Ms;
  input: string;
  output: string;
  settings: string;
}>;

/** `locked`: those that others keep from being kept for now. `refused`: answers that their conversations did not take. */
type Kept = Readonly<{ locked: readonly KeptResponse[]; refused: readonly NotAdded[] }>;

export class ResponseTables {
  limits: StoredResponseLimits;
  readonly #database: Database;

  constructor(database: Database, limits: StoredResponseLimits) {
    this.#database = database;
    this.limits = limits;
  }

  /**
   * Keeps all in one transaction; what the tables do not take is left out alone. Where others have an account locked, its
   * responses are tried again, and `othersKept` is called when nothing else is left to do for a while.
   */
  async keepAll(
    responses: readonly KeptResponse[],
    now: Ms,
    othersKept = (): void => {},
  ): Promise<readonly NotAdded[]> {
    const from = systemPace.monotonic();
    const refused: NotAdded[] = [];
    let left = responses;
    let reason = new StoreUnavailable("other sessions of the database keep the rows of their accounts locked");
    for (let pauseMs: Ms = retryFirstMs; ; pauseMs = Math.min(2 * pauseMs, retryMostMs)) {
      try {
        const done = await this.#keepFree(left, now);
        left = done.locked;
        refused.push(...done.refused);
        if (left.length === 0) return refused;
        if (systemPace.monotonic() - from >= batchLockMs) othersKept();
      } catch (thrown) {
        // The ends of their replies wait for the database as well. What is kept already is not kept again.
        if (!(thrown instanceof StoreUnavailable)) throw thrown;
        reason = thrown;
      }
      if (systemPace.monotonic() - from >= limitMs) throw reason;
      await Bun.sleep(pauseMs);
    }
  }

  /** Skips accounts that others have locked, so that no connection waits for them. */
  async #keepFree(responses: readonly KeptResponse[], now: Ms): Promise<Kept> {
    const whole: KeptResponse[] = [];
    const refused: NotAdded[] = [];
    for (const response of responses) {
      const input = await this.#withReferred(response.account, response.input, now);
      if (input !== "too_large") whole.push({ ...response, input });
      else if (response.conversation != null) refused.push(notAdded(response, refuse("body_too_large")));
    }
    try {
      const kept = await this.#keepTogether(whole, now);
      return { locked: kept.locked, refused: [...refused, ...kept.refused] };
    } catch (thrown) {
      if (whole.length === 1 || !isOfOne(thrown)) throw thrown;
      const locked: KeptResponse[] = [];
      let failure: unknown = null;
      for (const response of whole) {
        try {
          const kept = await this.#keepTogether([response], now);
          locked.push(...kept.locked);
          refused.push(...kept.refused);
        } catch (again) {
          failure = again;
        }
      }
      if (failure !== null) throw failure;
      return { locked, refused };
    }
  }

  async #keepTogether(responses: readonly KeptResponse[], now: Ms): Promise<Kept> {
    const sized = responses
      .map((response) => ({ response, bytes: bytesOf(response) }))
      .filter(({ response, bytes }) => bytes <= this.limits.accountBytesMax && response.conversation?.only !== true);
    const conversing = responses.filter(({ conversation }) => conversation != null);
    if (sized.length + conversing.length === 0) return { locked: [], refused: [] };
    const all = [...new Set(responses.map(({ account }) => account))].sort((a, b) => a - b);
    return this.#database.transaction(
      async (session) => {
        const erased = await lockFree(session, all, [call(makeUse, arrayOf(all))]);
        const accounts = [...erased.keys()];
        const ids = arrayOf(accounts);
        const kept = sized.filter(({ response }) => erased.get(response.account) === false);
        const inserted = await session.run(
          kept.map(({ response: { account, id, previousId, input, output, settings }, bytes }) =>
            call(insert, id, account, previousId, now, bytes, input, output, settings),
          ),
        );
        const added = kept.filter((_, index) => inserted[index]!.length > 0);
        const sums = accounts.map((account) => added.filter(({ response }) => response.account === account));
        const counts = sums.map((of) => of.length);
        const bytes = sums.map((of) => of.reduce((sum, each) => sum + each.bytes, 0));
        await session.run([call(addUse, ids, arrayOf(counts), arrayOf(bytes))]);
        const { accountBytesMax, accountCountMax } = this.limits;
        const refused: NotAdded[] = [];
        for (const response of conversing) {
          if (!erased.has(response.account)) continue; // locked, and tried again
          const step = answerOf(response, response.input);
          const refusal = await this.#converse(sendIn(session), response.account, response.conversation!.id, step, now);
          if (isRefusal(refusal)) refused.push(notAdded(response, refusal));
        }
        await session.run([call(shorten, ids, accountBytesMax, accountCountMax)]);
        const isLocked = ({ account, conversation }: KeptResponse): boolean =>
          !erased.has(account) && (conversation != null || sized.some(({ response }) => response.account === account));
        return { locked: responses.filter(isLocked), refused };
      },
      { limitMs },
    );
  }

  converse(account: AccountId, id: string, step: ConversationStep, now: Ms): Promise<string | Refusal> {
    return this.#database.change(
      async (send) => {
        await send(lockUse, arrayOf([account]));
        const done = await this.#converse(send, account, id, step, now);
        await send(shorten, arrayOf([account]), this.limits.accountBytesMax, this.limits.accountCountMax);
        return done;
      },
      { limitMs },
    );
  }

  /** The account's sums are locked. */
  async #converse(
    send: Send,
    account: AccountId,
    id: string,
    step: ConversationStep,
    now: Ms,
  ): Promise<string | Refusal> {
    const [before = null] = await send<KeptConversation>(readConversation, account, id, this.#oldestKept(now));
    const done = conversed(id, before, step, this.limits.conversationBytesMax);
    if (isRefusal(done) || done.after === null) return isRefusal(done) ? done : done.reply;
    const bytes = conversationBytes(done.after);
    if (bytes > this.limits.accountBytesMax) return conversationFull;
    await send(rewrite, id, now, bytes, done.after.input, done.after.settings);
    await send(addUse, arrayOf([account]), arrayOf([0]), arrayOf([bytes - conversationBytes(before!)]));
    return done.reply;
  }

  async find(
    account: AccountId,
    previousId: string | null,
    itemIds: readonly string[],
    now: Ms,
  ): Promise<EarlierTexts | "too_large"> {
    const rows = previousId === null ? [] : await this.#chain(account, previousId, now);
    const items = await this.#responsesOf(account, itemIds, new Set(rows.map(({ id }) => id)), now);
    if (items === "too_large") return items;
    return this.#inMemory(account, [...rows, ...items], (table) => table.find(account, previousId, itemIds, now));
  }

  /** The response object as JSON text. */
  async response(account: AccountId, id: string, now: Ms): Promise<string | null> {
    const [row] = await this.#database.ask<Row>(readResponse, account, id, this.#oldestKept(now));
    return row === undefined ? null : responseText(row);
  }

  async input(
    account: AccountId,
    id: string,
    page: ItemPage,
    now: Ms,
  ): Promise<ReturnType<StoredResponseTable["input"]>> {
    const rows = await this.#database.ask<Row>(readInput, account, id, this.#oldestKept(now));
    return this.#inMemory(account, rows, (table) => table.input(account, id, page, now));
  }

  /** False where the account has no such response. */
  delete(account: AccountId, id: string, now: Ms): Promise<boolean> {
    return this.#database.change(async (send) => {
      await send(lockUse, arrayOf([account]));
      const removed = await send<Removed>(remove, account, id, this.#oldestKept(now));
      await takeOff(send, removed);
      return removed.length > 0;
    });
  }

  /** Removes all of an account's; `forEver`: nothing more is kept for it, whichever gateway is asked. */
  async erase(account: AccountId, forEver: boolean): Promise<void> {
    await this.#database.change(async (send) => {
      await send(makeUse, arrayOf([account]));
      await send(lockUse, arrayOf([account]));
      await send(removeAll, account);
      await send(emptyUse, account, forEver ? 1 : 0);
    });
  }

  /** Removes some that are too old; says whether there may be more. */
  expire(now: Ms): Promise<boolean> {
    return this.#database.transaction(async (session) => {
      const send = sendIn(session);
      const old = await send<Readonly<{ id: string; account: AccountId }>>(expired, this.#oldestKept(now), expirySlice);
      const free = await lockFree(session, [...new Set(old.map(({ account }) => account))]);
      const ids = old.filter(({ account }) => free.has(account)).map(({ id }) => id);
      await takeOff(send, await send<Removed>(removeSome, arrayOf(ids)));
      return ids.length === expirySlice;
    });
  }

  #oldestKept(now: Ms): Ms {
    return now - this.limits.keepMs;
  }

  /** A conversation from its last response back to its first, but no more of it than is too large. */
  #chain(account: AccountId, lastId: string, now: Ms): Promise<readonly Row[]> {
    const bytesMax = bytesPerUnitMax * this.limits.conversationBytesMax;
    return this.#read<Row>(readChain, account, lastId, this.#oldestKept(now), bytesMax);
  }

  /** The responses that items belong to, as far as they are looked at; too large, where all of it is. */
  async #responsesOf(
    account: AccountId,
    itemIds: readonly string[],
    known: ReadonlySet<string>,
    now: Ms,
  ): Promise<readonly Row[] | "too_large"> {
    const ids = new Map<string, { input: boolean; output: boolean }>();
    for (const itemId of itemIds) {
      const id = responseIdOf(itemId);
      if (id === null) continue;
      const wanted = ids.get(id) ?? { input: false, output: false };
      wanted[isOfInput(itemId) ? "input" : "output"] = true;
      ids.set(id, wanted);
    }
    if (ids.size === 0) return [];
    const names = arrayOf([...ids.keys()]);
    const oldestKept = this.#oldestKept(now);
    type Size = Readonly<{ id: string; input: number; output: number }>;
    const sizes = await this.#read<Size>(readSizes, account, names, oldestKept);
    let bytes = 0;
    for (const { id, input, output } of sizes) {
      const wanted = ids.get(id)!;
      bytes += (wanted.input ? input : 0) + (wanted.output ? output : 0);
    }
    if (bytes > bytesPerUnitMax * this.limits.conversationBytesMax) return "too_large";
    const wanted = [...ids].filter(([id]) => !known.has(id));
    const inputs = arrayOf(wanted.map(([, { input }]) => input));
    const outputs = arrayOf(wanted.map(([, { output }]) => output));
    return this.#read<Row>(readParts, account, arrayOf(wanted.map(([id]) => id)), oldestKept, inputs, outputs);
  }

  async #withReferred(account: AccountId, input: string, now: Ms): Promise<string | "too_large"> {
    if (!input.includes('"item_reference"')) return input;
    const items = JSON.parse(input) as readonly Readonly<{ type?: unknown; id?: unknown }>[];
    const ids = items.flatMap(({ type, id }) => (type === "item_reference" && typeof id === "string" ? [id] : []));
    const rows = await this.#responsesOf(account, ids, new Set(), now);
    if (rows === "too_large") return rows;
    return this.#inMemory(account, rows, (table) => table.withReferred(account, input, now));
  }

  #read<Result>(text: Question, ...values: readonly (string | number)[]): Promise<readonly Result[]> {
    return this.#database.read((session) => sendIn(session)<Result>(text, ...values), limitMs);
  }

  #inMemory<Result>(account: AccountId, rows: readonly Row[], look: (table: StoredResponseTable) => Result): Result {
    const memory: Memory = openStoredResponses(":memory:");
    try {
      const put = memory.prepare<unknown, (string | number | null)[]>(
        `INSERT INTO responses (id, account_id, previous_id, kept_at, bytes, input, output, settings)
         VALUES (?, ?, ?, ?, 0, ?, ?, ?)`,
      );
      for (const { id, previous_id, kept_at, input, output, settings } of rows) {
        put.run(id, account, previous_id, kept_at, input, output, settings);
      }
      return look(new StoredResponseTable(memory, this.limits));
    } finally {
      memory.close();
    }
  }
}

type Removed = Readonly<{ account: AccountId; bytes: number }>;

/** Locks accounts that are not locked yet; returns whether each was erased. */
async function lockFree(
  session: Session,
  accounts: readonly AccountId[],
  before: readonly Call[] = [],
): Promise<ReadonlyMap<AccountId, boolean>> {
  try {
    const found = await session.run([...before, call(savepoint), call(lockUseAtOnce, arrayOf(accounts))]);
    return new Map(found.at(-1)!.map((row) => [row["account"] as AccountId, row["erased"] === 1]));
  } catch (thrown) {
    if (!(thrown instanceof StatementError && thrown.state === "55P03")) throw thrown;
    await session.run([call(withoutLocks)]);
  }
  const free = new Map<AccountId, boolean>();
  if (accounts.length === 1) return free;
  for (const account of accounts) for (const found of await lockFree(session, [account])) free.set(...found);
  return free;
}

async function takeOff(send: Send, removed: readonly Removed[]): Promise<void> {
  if (removed.length === 0) return;
  const ids = [...new Set(removed.map(({ account }) => account))];
  const of = ids.map((id) => removed.filter(({ account }) => account === id));
  const counts = arrayOf(of.map(({ length }) => -length));
  await send(addUse, arrayOf(ids), counts, arrayOf(of.map((each) => -each.reduce((sum, { bytes }) => sum + bytes, 0))));
}

const bytesOf = ({ input, output, settings }: KeptResponse): number =>
  Buffer.byteLength(input) + Buffer.byteLength(output) + Buffer.byteLength(settings);

/** What is wrong with what was given, and not with the server. */
const isOfOne = (thrown: unknown): boolean => {
  const cause = thrown instanceof Error ? (thrown.cause ?? thrown) : thrown;
  return cause instanceof StatementError && /^2[23]/.test(cause.state ?? "");
};

const mine = "account_id = $1::text::bigint";
const makeUse = statement(
  "make responses use",
  `INSERT INTO stored_responses_use (account_id, responses, bytes)
   SELECT id, 0, 0 FROM unnest($1::text::bigint[]) AS given (id) ON CONFLICT DO NOTHING`,
);
const lockedUse = `SELECT account_id::float8 AS account, erased::int AS erased FROM stored_responses_use
   WHERE account_id = ANY($1::text::bigint[]) ORDER BY stored_responses_use.account_id FOR UPDATE`;
const lockUse = statement("lock responses use", lockedUse);
const lockUseAtOnce = statement("lock responses use at once", `${lockedUse} NOWAIT`);
const savepoint = { ...statement("before locks", "SAVEPOINT before_locks"), isPrepared: true };
const withoutLocks = statement("without locks", "ROLLBACK TO SAVEPOINT before_locks");
const insert = statement(
  "keep response",
  `INSERT INTO stored_responses (id, account_id, previous_id, kept_at, bytes, input, output, settings)
   VALUES ($1::text, $2::text::bigint, $3::text, $4::text::bigint, $5::text::bigint, $6::text, $7::text, $8::text)
   ON CONFLICT DO NOTHING RETURNING 1 AS kept`,
);
const addUse = statement(
  "add responses use",
  `UPDATE stored_responses_use SET responses = responses + u.count, bytes = stored_responses_use.bytes + u.bytes
   FROM unnest($1::text::bigint[], $2::text::bigint[], $3::text::bigint[]) AS u (id, count, bytes) WHERE account_id = u.id`,
);
/** The oldest go until the rest is within an account's share. */
const shorten = statement(
  "shorten responses",
  `WITH full_accounts AS (
     SELECT account_id FROM stored_responses_use
     WHERE account_id = ANY($1::text::bigint[]) AND (bytes > $2::text::bigint OR responses > $3::text::bigint)),
   ranked AS (
     SELECT id, sum(bytes) OVER newest AS bytes_so_far, count(*) OVER newest AS count_so_far FROM stored_responses
     WHERE account_id IN (SELECT account_id FROM full_accounts)
     WINDOW newest AS (PARTITION BY account_id ORDER BY kept_at DESC, id DESC)),
   removed AS (
     DELETE FROM stored_responses WHERE id IN (
       SELECT id FROM ranked WHERE bytes_so_far > $2::text::bigint OR count_so_far > $3::text::bigint)
     RETURNING account_id, bytes),
   sums AS (SELECT account_id, count(*) AS count, sum(bytes) AS bytes FROM removed GROUP BY account_id)
   UPDATE stored_responses_use SET responses = responses - sums.count, bytes = stored_responses_use.bytes - sums.bytes
   FROM sums WHERE stored_responses_use.account_id = sums.account_id`,
);
const readResponse = statement(
  "read response",
  `SELECT settings, output FROM stored_responses WHERE ${mine} AND id = $2::text AND kept_at >= $3::text::bigint`,
);
const readConversation = statement(
  "read conversation's texts",
  `SELECT input, settings FROM stored_responses WHERE ${mine} AND id = $2::text AND kept_at >= $3::text::bigint`,
);
const rewrite = statement(
  "rewrite conversation",
  `UPDATE stored_responses SET kept_at = $2::text::bigint, bytes = $3::text::bigint, input = $4::text, settings = $5::text
   WHERE id = $1::text`,
);
const readInput = statement(
  "read input",
  `SELECT id, previous_id, kept_at::float8 AS kept_at, input, '[]' AS output, '{}' AS settings FROM stored_responses
   WHERE ${mine} AND id = $2::text AND kept_at >= $3::text::bigint`,
);
const readChain = statement(
  "read conversation",
  `WITH RECURSIVE chain AS (
     SELECT id, previous_id, (octet_length(input) + octet_length(output))::bigint AS bytes FROM stored_responses
     WHERE ${mine} AND id = $2::text AND kept_at >= $3::text::bigint
     UNION ALL
     SELECT r.id, r.previous_id, chain.bytes + octet_length(r.input) + octet_length(r.output)
     FROM chain JOIN stored_responses AS r ON r.id = chain.previous_id
     WHERE r.account_id = $1::text::bigint AND r.kept_at >= $3::text::bigint AND chain.bytes <= $4::text::bigint)
   SELECT r.id, r.previous_id, r.kept_at::float8 AS kept_at, r.input, r.output, '{}' AS settings
   FROM chain JOIN stored_responses AS r ON r.id = chain.id`,
);
const readSizes = statement(
  "read response sizes",
  `SELECT id, octet_length(input)::float8 AS input, octet_length(output)::float8 AS output FROM stored_responses
   WHERE ${mine} AND id = ANY($2::text::text[]) AND kept_at >= $3::text::bigint`,
);
const readParts = statement(
  "read response parts",
  `SELECT r.id, r.previous_id, r.kept_at::float8 AS kept_at, CASE WHEN u.input THEN r.input ELSE '[]' END AS input,
     CASE WHEN u.output THEN r.output ELSE '[]' END AS output, '{}' AS settings
   FROM unnest($2::text::text[], $4::text::boolean[], $5::text::boolean[]) AS u (id, input, output)
   JOIN stored_responses AS r ON r.id = u.id
   WHERE r.account_id = $1::text::bigint AND r.kept_at >= $3::text::bigint`,
);
const remove = statement(
  "delete response",
  `DELETE FROM stored_responses WHERE ${mine} AND id = $2::text AND kept_at >= $3::text::bigint
   RETURNING account_id::float8 AS account, bytes::float8 AS bytes`,
);
const removeSome = statement(
  "delete responses",
  `DELETE FROM stored_responses WHERE id = ANY($1::text::text[])
   RETURNING account_id::float8 AS account, bytes::float8 AS bytes`,
);
const removeAll = statement("erase responses", `DELETE FROM stored_responses WHERE ${mine}`);
const emptyUse = statement(
  "erase responses use",
  `UPDATE stored_responses_use SET responses = 0, bytes = 0, erased = greatest(erased, $2::text::smallint) WHERE ${mine}`,
);
const expired = statement(
  "expired responses",
  `SELECT id, account_id::float8 AS account FROM stored_responses
   WHERE kept_at < $1::text::bigint ORDER BY kept_at LIMIT $2::text::int`,
);

/** Removes what an account stored, without a Worker; see `StoredResponses.erase`. */
export const eraseResponsesIn = (database: Database, account: AccountId, forEver: boolean): Promise<void> =>
  new ResponseTables(database, noLimits).erase(account, forEver);

/** Nothing is kept here. */
const noLimits: StoredResponseLimits = { keepMs: 0, accountBytesMax: 0, accountCountMax: 0, conversationBytesMax: 0 };

assert(journalGiveUpMs < limitMs, "who gets the end of a reply finds its response");
