// An index of the journal's replies by account, model, endpoint, key and time, and their sums by day: in a file of its own,
// made by its reader, so that the journal's writer does nothing for it. It says up to which line it knows the
// journal and is caught up before each look. It holds nothing that the journal does not: when it is lost, or belongs to
// another journal (a backup was put back), it is made again.
//
// A page with any filter is a merge of the combinations of model, endpoint and key that fit, each in the order of time:
// 63 places for each key in an index that are read side by side, however many replies there are.
import type { AccountsAsked, AccountsFound } from "../../account/accounts-page.ts";
import {
  dayUsageOf,
  endUserOf,
  type EndUserRow,
  foldedSums,
  type FoundStep,
  keyNameIn,
  namesIn,
  stepOf,
  sumOf,
  type SumRow,
  usageSums,
} from "./usage-sum.ts";
import type { Database } from "bun:sqlite";
import { noUsage, plus } from "../../account/usage-queries.ts";
import type {
  UsageAsked,
  UsageFilter,
  UsagePage,
  UsagePlace,
  UsageQueries,
  UsageSummary,
} from "../../account/usage-queries.ts";
import { type JournalReply, usageRowOf } from "../../account/usage-row.ts";
import type { ReportAsked, ReportPart } from "../../core/report.ts";
import { endUsersShownMax, journalDisorderMs } from "../limits.ts";
import { dayMs } from "../../core/units.ts";
import { requestIdBeginning } from "../../core/request-log.ts";
import { type AccountId, type KeyId, type Ms } from "../../core/types.ts";
import { accountsPage, type UseOf } from "./accounts-page.ts";
import { type Beside, openBeside } from "../beside-ledger.ts";
import type { RowOf } from "../ledger/schema.ts";
import { SqliteQuestions } from "../questions.ts";
import { foldedBetween, overTimeQuestion } from "./over-time.ts";
import { cutDay, type FoundSums, reportQuestion, reportRowOf } from "./report.ts";
import type { ServedAsked } from "./served-parts.ts";

/** Journal lines in one step: about 70 ms. */
export const usageIndexSliceLines = 20_000;

/** Raised when the tables change: an index of another version is made again. */
const indexVersion = 5;

const sumsTable = (name: string, ...more: readonly string[]): string => {
  const key = ["account_id", "day", "kind_id", "end_user_id", ...more];
  const columns = [...key, ...usageSums].map((column) => `${column} INTEGER NOT NULL`);
  return `CREATE TABLE ${name} (${columns.join(", ")}, PRIMARY KEY (${key.join(", ")})) STRICT, WITHOUT ROWID;`;
};

const tables = `
  CREATE TABLE kinds (
    id INTEGER PRIMARY KEY,
    model TEXT NOT NULL,
    endpoint TEXT NOT NULL,
    key_id INTEGER NOT NULL,
    cost_center TEXT NOT NULL,
    UNIQUE (model, endpoint, key_id, cost_center)
  ) STRICT;

  CREATE TABLE replies (
    account_id INTEGER NOT NULL,
    kind_id INTEGER NOT NULL,
    at INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    PRIMARY KEY (account_id, kind_id, at, sequence)
  ) STRICT, WITHOUT ROWID;

  -- The same of those that were for an end user of a key, by that one's number.
  CREATE TABLE end_user_replies (
    account_id INTEGER NOT NULL,
    end_user_id INTEGER NOT NULL,
    kind_id INTEGER NOT NULL,
    at INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    PRIMARY KEY (account_id, end_user_id, kind_id, at, sequence)
  ) STRICT, WITHOUT ROWID;

  -- Account 0 is all accounts together, end user 0 none.
  ${sumsTable("days")}
  -- By the first day of each month.
  ${sumsTable("months")}
  -- Of all that have tags once more, and of no account 0.
  ${sumsTable("tag_days", "tag_set_id")}
  CREATE TABLE tag_sets (
    id INTEGER PRIMARY KEY,
    account_id INTEGER NOT NULL,
    tags TEXT NOT NULL,
    UNIQUE (account_id, tags)
  ) STRICT;

  -- The last line of the journal that is in the tables above.
  CREATE TABLE mark (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    sequence INTEGER NOT NULL,
    billing_key TEXT NOT NULL
  ) STRICT;

  INSERT INTO mark (id, sequence, billing_key) VALUES (1, 0, '');
`;

const sums = usageSums.join(", ");
const addSums = usageSums.map((column) => `${column} = ${column} + excluded.${column}`).join(", ");
const summed = usageSums.map((column) => `sum(${column})`).join(", ");
/** SQLite merges at most 500 parts at once. */
const mergedAtOnce = 400;
/** Pairs of account and kind whose old replies are let go of in one step. */
const prunedAtOnce = 200;
/** As PostgreSQL has them. */
const views = (
  [
    ["served_days", "days"],
    ["served_months", "months"],
    ["tagged_days", "tag_days", ", tags", "JOIN main.tag_sets ON tag_sets.id = tag_set_id"],
  ] as const
).map(
  ([name, table, tags = "", join = ""]) => `
  CREATE TEMP VIEW ${name} AS
  SELECT sums.account_id, day, model, endpoint, key_id, end_user_id, cost_center${tags}, ${sums}
  FROM main.${table} AS sums JOIN main.kinds ON kinds.id = kind_id ${join}`,
);
/** Of a day. */
const firstOfMonth = `unixepoch(day * ${dayMs / 1000}, 'unixepoch', 'start of month') / ${dayMs / 1000}`;
/** What is not in the index yet, read once. */
const sliceTable = `
  CREATE TEMP TABLE slice (
    account_id INTEGER, day INTEGER, kind_id INTEGER, end_user_id INTEGER, at INTEGER, sequence INTEGER, tags TEXT,
    requests INTEGER, input INTEGER, cached_input INTEGER, output INTEGER, reasoning INTEGER, billed_tokens INTEGER
  ) STRICT`;

type Kind = Readonly<{ id: number; model: string; endpoint: string; key_id: KeyId }>;
type Line = Pick<RowOf<"journal">, "at" | "sequence"> & JournalReply;
type LinePlace = Readonly<{ at: Ms; sequence: number }>;
type Mark = Pick<RowOf<"journal_folded">, "sequence" | "billing_key">;

/** A power cut may take the last steps or all of it; only time is lost. */
const form: Beside = {
  name: "index",
  version: indexVersion,
  tables,
  pragmas: ["synchronous = OFF", "temp_store = MEMORY", "secure_delete = ON"],
};

export class UsageIndex {
  readonly #database: Database;
  readonly #statements: ReturnType<typeof prepare>;
  readonly #questions: SqliteQuestions;
  isClosed = false;
  /** Kinds never change and are few: one for each model on each endpoint. */
  readonly #kinds = new Map<number, Kind>();
  /** Replies up to this line of the journal, where they were folded, are not in here; and on the way to it. */
  #prunedTo = 0;
  #pruningTo = 0;
  #toPrune: { account_id: number; kind_id: number }[] = [];

  private constructor(database: Database) {
    this.#database = database;
    for (const view of views) database.run(view);
    this.#statements = prepare(database);
    this.#questions = new SqliteQuestions(database);
  }

  /** Opens the index of a journal, and makes it if there is none that fits. Throws what SQLite throws. */
  static open(file: string, journalFile: string): UsageIndex {
    return openBeside(file, journalFile, form, (database) => {
      const index = new UsageIndex(database);
      index.#checkMark();
      return index;
    });
  }

  /** Takes in the next lines of the journal, a slice; says whether there may be more. */
  catchUp(): boolean {
    // One state of the journal from here on: a line that is folded between two looks would be missed.
    return this.#database.transaction(() => {
      const { mark, last, folded } = this.#statements;
      if (folded.get()!.sequence > mark.get()!.sequence) this.#beginWithSums();
      const after = mark.get()!.sequence;
      const to = Math.min(after + usageIndexSliceLines, last.get()?.sequence ?? 0);
      if (to <= after) return false;
      const { addKinds, readSlice, addReplies, addEndUserReplies, addSums, emptySlice, setMark } = this.#statements;
      addKinds.run(after, to);
      readSlice.run(after, to);
      for (const add of [addReplies, addEndUserReplies, ...addSums]) add.run();
      emptySlice.run();
      setMark.run(to);
      return true;
    })();
  }

  /** Removes some of the replies that are no longer lines of the journal; says whether there may be more. */
  prune(): boolean {
    return this.#database.transaction(() => {
      const { folded, placesOfAll, removeReplies, removeEndUserReplies, forgetTagged, forgetTags } = this.#statements;
      const { sequence, at } = folded.get()!;
      if (sequence !== this.#pruningTo && this.#toPrune.length === 0) {
        this.#toPrune = placesOfAll.all();
        this.#pruningTo = sequence;
      }
      for (const { account_id, kind_id } of this.#toPrune.splice(0, prunedAtOnce)) {
        removeReplies.run(account_id, kind_id, at, this.#pruningTo);
      }
      if (this.#toPrune.length > 0) return true;
      if (this.#prunedTo === this.#pruningTo) return false;
      if (removeEndUserReplies.run(this.#pruningTo, usageIndexSliceLines).changes > 0) return true;
      if (forgetTagged.run(Math.floor(at / dayMs)).changes > 0) forgetTags.run();
      this.#prunedTo = this.#pruningTo;
      return false;
    })();
  }

  /** The journal folded lines that are not in here: its sums are the beginning, and what follows them is caught up. */
  #beginWithSums(): void {
    const { empty, addFoldedKinds, addFolded, setMarkToFolded } = this.#statements;
    for (const statement of [...empty, addFoldedKinds, ...addFolded]) statement.run();
    setMarkToFolded.run();
  }

  /** As that of `usageInFile`. */
  erase(account: AccountId): void {
    const { eraseTags, eraseTagged } = this.#statements;
    this.#database.transaction(() => [eraseTagged, eraseTags].map((statement) => statement.run(account)))();
  }

  page(account: AccountId, filter: UsageFilter, before: UsagePlace | null, limit: number): UsagePage {
    return this.#database.transaction(() => {
      const place = before === null ? newest : { at: before.at, sequence: Number(before.sequence) || 0 };
      const places = this.#places(account, filter, place, limit + 1);
      const shown = places.slice(0, limit);
      const rows = shown.map(({ sequence }) => usageRowOf(this.#statements.line.get(sequence)!));
      return { rows, next: places.length > limit ? shown.at(-1)! : null };
    })();
  }

  summary(account: AccountId, fromDay: number): UsageSummary {
    const totals = this.#statements.totals.all(account);
    const kinds = totals.map(({ kind_id }) => this.#kind(kind_id));
    return {
      days: dayUsageOf(
        this.#statements.daysFrom
          .all(account, fromDay)
          .map((row) => ({ ...row, model: this.#kind(row.kind_id).model })),
      ),
      total: totals.map(sumOf).reduce(plus, noUsage),
      ...namesIn(kinds),
      endUsers: this.#statements.topEndUsers.all(account, fromDay, endUsersShownMax).map(endUserOf),
    };
  }

  accounts(asked: AccountsAsked): Promise<AccountsFound> {
    return accountsPage((question, ...values) => this.#questions.rows(question, ...values), asked, useInDays);
  }

  /** As UsageQueries. */
  overTime(asked: UsageAsked): Awaited<ReturnType<UsageQueries["overTime"]>> {
    return this.#database.transaction(() => {
      const [from, until] = [asked.from, asked.until - 1].map((at) => Math.floor(at / dayMs));
      return {
        steps: this.#questions.rows<FoundStep>(...overTimeQuestion(asked, this.#served)).map(stepOf),
        onlyDays: asked.stepMs < dayMs && this.#questions.rows(foldedBetween, from!, until!).length > 0,
      };
    })();
  }

  /** As UsageQueries. */
  report(asked: ReportAsked): ReportPart {
    return this.#database.transaction(() => {
      const cut = cutDay(asked);
      return {
        rows: this.#questions.rows<FoundSums>(...reportQuestion(asked, this.#served)).map(reportRowOf),
        cutsFoldedDay: cut !== null && this.#questions.rows(...cut).length > 0,
      };
    })();
  }

  /** All that is in the journal is in the sums. */
  readonly #served: Pick<ServedAsked, "summedTo" | "near"> = {
    summedTo: Number.MAX_SAFE_INTEGER,
    near: (from, until, taken) => ({
      where: `AND sequence >= $${taken + 1}::text::bigint AND sequence < $${taken + 2}::text::bigint`,
      values: [this.#sequenceAt(from - journalDisorderMs), this.#sequenceAt(until + journalDisorderMs)],
    }),
  };

  /** The first line at or after a time, as far as lines are in order. */
  #sequenceAt(at: Ms): number {
    const { lineAt, last } = this.#statements;
    let low = 0;
    let high = (last.get()?.sequence ?? 0) + 1;
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if ((lineAt.get(middle)?.at ?? Number.MAX_SAFE_INTEGER) < at) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  close(): void {
    this.isClosed = true;
    this.#database.close();
  }

  /** The newest places of each kind that fits, and of the requests that the text names. */
  #places(account: AccountId, filter: UsageFilter, before: LinePlace, limit: number): LinePlace[] {
    const { model, endpoint, key, text, endUser = null } = filter;
    /** By their keys; null: any. */
    const endUsers =
      endUser === null
        ? null
        : new Map(this.#statements.endUsersNamed.all(account, endUser).map(({ id, key_id }) => [key_id, id]));
    const from = filter.from ?? 0;
    const to = filter.to ?? newest.at;
    const part = text.toLowerCase();
    const asked = this.#statements.kindsOf
      .all(account)
      .map(({ kind_id }) => this.#kind(kind_id))
      .filter((kind) => (model === null || kind.model === model) && (endpoint === null || kind.endpoint === endpoint))
      .filter((kind) => key === null || kind.key_id === key)
      .filter((kind) => endUsers === null || endUsers.has(kind.key_id));
    const fitting = asked.filter((kind) => kind.model.toLowerCase().includes(part));
    const found: LinePlace[] = [];
    for (let at = 0; at < fitting.length; at += mergedAtOnce) {
      const some = fitting.slice(at, at + mergedAtOnce);
      found.push(...this.#merged(account, some, endUsers, [from, to, before.at, before.sequence], limit));
    }
    const beginning = requestIdBeginning(text);
    if (beginning !== null) {
      const named = this.#statements.named.all(beginning, `${beginning}{`, account);
      const isAsked = (line: Line) =>
        asked.some(
          (kind) => kind.model === line.model && kind.endpoint === line.endpoint && kind.key_id === line.keyId,
        ) &&
        (endUser === null || line.endUserName === endUser);
      const isInTime = ({ at, sequence }: Line) =>
        at >= from && at < to && (at < before.at || (at === before.at && sequence < before.sequence));
      const known = new Set(found.map(({ sequence }) => sequence));
      for (const line of named) {
        if (isAsked(line) && isInTime(line) && !known.has(line.sequence)) found.push(line);
      }
    }
    return found
      .sort((one, other) => other.at - one.at || other.sequence - one.sequence)
      .slice(0, limit)
      .map(({ at, sequence }) => ({ at, sequence }));
  }

  /** The newest places of some kinds; SQLite reads a compound of ordered parts side by side, no further than needed. */
  #merged(
    account: AccountId,
    kinds: readonly Kind[],
    endUsers: ReadonlyMap<KeyId, number> | null,
    bounds: readonly number[],
    limit: number,
  ): LinePlace[] {
    const replies = ({ key_id }: Kind): string =>
      endUsers === null
        ? "replies WHERE account_id = ?1"
        : `end_user_replies WHERE account_id = ?1 AND end_user_id = ${endUsers.get(key_id)}`;
    const parts = kinds.map(
      (kind) => `
        SELECT at, sequence FROM ${replies(kind)} AND kind_id = ${kind.id}
          AND at >= ?2 AND at < ?3 AND (at, sequence) < (?4, ?5) AND sequence > ?7`,
    );
    const merge = this.#database.prepare<LinePlace, number[]>(
      `${parts.join(" UNION ALL ")} ORDER BY at DESC, sequence DESC LIMIT ?6`,
    );
    try {
      return merge.all(account, ...bounds, limit, this.#statements.folded.get()!.sequence);
    } finally {
      merge.finalize();
    }
  }

  #kind(id: number): Kind {
    let kind = this.#kinds.get(id);
    if (kind === undefined) this.#kinds.set(id, (kind = this.#statements.kind.get(id)!));
    return kind;
  }

  #checkMark(): void {
    const { sequence, billing_key } = this.#statements.mark.get()!;
    const folded = this.#statements.folded.get()!;
    if (sequence < folded.sequence) return; // it begins again with the journal's sums
    const known = sequence === folded.sequence ? folded : this.#statements.billingKey.get(sequence);
    if (known?.billing_key !== billing_key) {
      throw new Error("the index belongs to another journal");
    }
  }
}

const useInDays: UseOf = (sum, fromDay) =>
  `coalesce((SELECT sum(${sum === "tokens" ? "input + output" : sum}) FROM days
    WHERE days.account_id = a.id AND day >= ${fromDay}::text::int), 0)`;

const newest: LinePlace = { at: Number.MAX_SAFE_INTEGER, sequence: Number.MAX_SAFE_INTEGER };

function prepare(database: Database) {
  const slice = `ledger.journal WHERE sequence > ?1 AND sequence <= ?2 AND kind IN ('charge', 'coder_usage')`;
  database.run(sliceTable);
  // in the order of each table, so that neighbors are written together
  const addTo = (table: "days" | "months", from: string) =>
    (["account_id", "0"] as const).map((account) =>
      database.prepare<unknown, []>(`
        INSERT INTO ${table} (account_id, day, kind_id, end_user_id, ${sums})
        SELECT ${account}, ${table === "days" ? "day" : firstOfMonth}, kind_id, ${account === "0" ? "0" : "coalesce(end_user_id, 0)"}, ${summed}
        FROM ${from} AS part WHERE true GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
        ON CONFLICT DO UPDATE SET ${addSums}`),
    );
  const isKind = ["model", "endpoint", "key_id", "cost_center"].map((column) => `kinds.${column} = line.${column}`);
  const folds = `(SELECT line.*, kinds.id AS kind_id FROM (${foldedSums("ledger.")}) AS line JOIN kinds ON ${isKind.join(" AND ")})`;
  const lineColumns = `at, sequence, billing_key AS billingKey, endpoint, model, input_fresh AS inputFresh,
    input_cached AS inputCached, output, reasoning, billed_tokens AS billedTokens, estimated, key_id AS keyId,
    (SELECT ${keyNameIn("k", "ledger.")} FROM ledger.api_keys AS k WHERE k.account_id = journal.account_id AND k.id = key_id) AS keyName,
    (SELECT name FROM ledger.end_users AS e
      WHERE e.account_id = journal.account_id AND e.id = end_user_id) AS endUserName`;
  return {
    addKinds: database.prepare<unknown, [number, number]>(`
      INSERT INTO kinds (model, endpoint, key_id, cost_center)
      SELECT DISTINCT model, endpoint, key_id, coalesce(cost_center, '') FROM ${slice} ON CONFLICT DO NOTHING`),
    readSlice: database.prepare<unknown, [number, number]>(`
      INSERT INTO slice
      SELECT account_id, at / ${dayMs}, kinds.id, end_user_id, at, sequence, tags, 1, input_fresh + input_cached, input_cached,
        output, reasoning, billed_tokens
      FROM (SELECT sequence, account_id, at, model, endpoint, key_id, end_user_id, tags, coalesce(cost_center, '') AS cost_center,
        input_fresh, input_cached, output, reasoning, billed_tokens FROM ${slice}) AS line
      JOIN kinds ON ${isKind.join(" AND ")}`),
    emptySlice: database.prepare<unknown, []>("DELETE FROM slice"),
    // in the order of the table, so that neighbors are written together
    addReplies: database.prepare<unknown, []>(`
      INSERT INTO replies (account_id, kind_id, at, sequence)
      SELECT account_id, kind_id, at, sequence FROM slice ORDER BY 1, 2, 3, 4`),
    addEndUserReplies: database.prepare<unknown, []>(`
      INSERT INTO end_user_replies (account_id, end_user_id, kind_id, at, sequence)
      SELECT account_id, end_user_id, kind_id, at, sequence FROM slice WHERE end_user_id IS NOT NULL ORDER BY 1, 2, 3, 4, 5`),
    addSums: [
      ...addTo("days", "slice"),
      ...addTo("months", "slice"),
      database.prepare<unknown, []>(`
        INSERT INTO tag_sets (account_id, tags) SELECT DISTINCT account_id, tags FROM slice WHERE tags IS NOT NULL
        ON CONFLICT DO NOTHING`),
      database.prepare<unknown, []>(`
        INSERT INTO tag_days (account_id, day, kind_id, end_user_id, tag_set_id, ${sums})
        SELECT slice.account_id, day, kind_id, coalesce(end_user_id, 0), tag_sets.id, ${summed}
        FROM slice JOIN tag_sets ON tag_sets.account_id = slice.account_id AND tag_sets.tags = slice.tags
        GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5 ON CONFLICT DO UPDATE SET ${addSums}`),
    ],
    folded: database.prepare<Mark & { at: number }, []>("SELECT sequence, billing_key, at FROM ledger.journal_folded"),
    /** Sums do not say for whom, and have no tags. */
    empty: ["replies", "end_user_replies", "days", "months", "tag_days", "tag_sets"].map((table) =>
      database.prepare<unknown, []>(`DELETE FROM ${table}`),
    ),
    /** Sums of folded lines have no tags. */
    forgetTagged: database.prepare<unknown, [day: number]>("DELETE FROM tag_days WHERE day < ?"),
    forgetTags: database.prepare<unknown, []>("DELETE FROM tag_sets WHERE id NOT IN (SELECT tag_set_id FROM tag_days)"),
    eraseTags: database.prepare<unknown, [number]>("DELETE FROM tag_sets WHERE account_id = ?"),
    eraseTagged: database.prepare<unknown, [number]>("DELETE FROM tag_days WHERE account_id = ?"),
    endUsersNamed: database.prepare<{ id: number; key_id: KeyId }, [number, string]>(
      "SELECT id, key_id FROM ledger.end_users WHERE account_id = ? AND name = ?",
    ),
    topEndUsers: database.prepare<EndUserRow, [number, number, number]>(`
      WITH sums AS (
        SELECT end_user_id, sum(requests) AS requests, sum(input) AS input, sum(cached_input) AS cached_input,
          sum(output) AS output, sum(reasoning) AS reasoning, sum(billed_tokens) AS billed_tokens
        FROM days WHERE account_id = ?1 AND day >= ?2 AND end_user_id > 0 GROUP BY end_user_id
        ORDER BY billed_tokens DESC, requests DESC, end_user_id LIMIT ?3
      )
      SELECT sums.*, e.key_id, e.name FROM sums
      LEFT JOIN ledger.end_users AS e ON e.account_id = ?1 AND e.id = end_user_id
      ORDER BY billed_tokens DESC, requests DESC, end_user_id`),
    removeEndUserReplies: database.prepare<unknown, [sequence: number, limit: number]>(`
      DELETE FROM end_user_replies WHERE (account_id, end_user_id, kind_id, at, sequence) IN (
        SELECT account_id, end_user_id, kind_id, at, sequence FROM end_user_replies WHERE sequence <= ? LIMIT ?)`),
    addFoldedKinds: database.prepare<unknown, []>(`
      INSERT INTO kinds (model, endpoint, key_id, cost_center)
      SELECT DISTINCT model, endpoint, key_id, cost_center FROM (${foldedSums("ledger.")}) WHERE true ON CONFLICT DO NOTHING`),
    addFolded: [...addTo("days", folds), ...addTo("months", folds)],
    setMarkToFolded: database.prepare<unknown, []>(
      "UPDATE mark SET (sequence, billing_key) = (SELECT sequence, billing_key FROM ledger.journal_folded)",
    ),
    placesOfAll: database.prepare<{ account_id: number; kind_id: number }, []>(
      "SELECT DISTINCT account_id, kind_id FROM days WHERE account_id > 0",
    ),
    removeReplies: database.prepare<unknown, [account: number, kind: number, at: number, sequence: number]>(
      "DELETE FROM replies WHERE account_id = ? AND kind_id = ? AND at <= ? AND sequence <= ?",
    ),
    mark: database.prepare<Mark, []>("SELECT sequence, billing_key FROM mark"),
    setMark: database.prepare<unknown, [number]>(`
      UPDATE mark SET sequence = ?1, billing_key = (SELECT billing_key FROM ledger.journal WHERE sequence = ?1)`),
    last: database.prepare<{ sequence: number }, []>(
      "SELECT sequence FROM ledger.journal ORDER BY sequence DESC LIMIT 1",
    ),
    billingKey: database.prepare<{ billing_key: string }, [number]>(
      "SELECT billing_key FROM ledger.journal WHERE sequence = ?",
    ),
    kind: database.prepare<Kind, [number]>("SELECT id, model, endpoint, key_id FROM kinds WHERE id = ?"),
    kindsOf: database.prepare<{ kind_id: number }, [number]>("SELECT DISTINCT kind_id FROM days WHERE account_id = ?"),
    line: database.prepare<Line, [number]>(`SELECT ${lineColumns} FROM ledger.journal WHERE sequence = ?`),
    // the plus keeps SQLite from reading all lines of the account instead
    named: database.prepare<Line, [string, string, number]>(`
      SELECT ${lineColumns} FROM ledger.journal
      WHERE billing_key >= ? AND billing_key < ? AND +account_id = ? AND kind IN ('charge', 'coder_usage')`),
    daysFrom: database.prepare<SumRow & { day: number; kind_id: number }, [number, number]>(
      `SELECT day, kind_id, ${sums} FROM days WHERE account_id = ? AND day >= ? ORDER BY day`,
    ),
    lineAt: database.prepare<{ at: number }, [number]>(
      "SELECT at FROM ledger.journal WHERE sequence >= ? ORDER BY sequence LIMIT 1",
    ),
    totals: database.prepare<SumRow & { kind_id: number }, [number]>(`
      SELECT kind_id, sum(requests) AS requests, sum(input) AS input, sum(cached_input) AS cached_input,
        sum(output) AS output, sum(reasoning) AS reasoning, sum(billed_tokens) AS billed_tokens
      FROM days WHERE account_id = ? GROUP BY kind_id`),
  };
}
