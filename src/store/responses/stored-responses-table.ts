// Reads and writes stored responses in SQLite, inside the Worker. Items travel and are stored as JSON text; they are
// parsed only when an id must be found among them.
import type { Database } from "bun:sqlite";
import {
  type EarlierTexts,
  isOfInput,
  type ItemPage,
  responseIdOf,
  responseText,
} from "../../dialects/stored-responses.ts";
import { isRefusal, refuse } from "../../core/refusals.ts";
import type { AccountId, Ms, Refusal } from "../../core/types.ts";
import {
  answerOf,
  conversationBytes,
  conversationFull,
  conversed,
  type NotAdded,
  notAdded,
  type ConversationStep,
} from "./conversations.ts";
import { InputItems } from "./input-items.ts";
import type { KeptResponse } from "./kept-text.ts";
import { mayRetry } from "../ledger/writer.ts";

export type StoredResponseLimits = Readonly<{
  /** Responses are forgotten when they are this old. */
  keepMs: Ms;
  /** Of one account; the oldest go first. */
  accountBytesMax: number;
  accountCountMax: number;
  /** The largest conversation that is put together. */
  conversationBytesMax: number;
}>;

/** Items that were found by their ids; `length`: characters of all that was asked for, each as often as it was. */
type FoundItems = Readonly<{ texts: ReadonlyMap<string, string>; bytes: number }>;

type Chain = Pick<EarlierTexts, "conversation" | "missingId">;
const nothing: Chain = { conversation: null, missingId: null };

/** About what a response takes beside its texts, so that a slice of empty ones ends too. */
const rowBytes = 1_024;

type Item = Readonly<{ id?: unknown; type?: unknown }>;

export class StoredResponseTable {
  readonly #database: Database;
  limits: StoredResponseLimits;
  readonly #statements: ReturnType<typeof prepare>;
  readonly #inputItems: InputItems;

  constructor(database: Database, limits: StoredResponseLimits) {
    this.#database = database;
    this.limits = limits;
    this.#statements = prepare(database);
    this.#inputItems = new InputItems(database);
  }

  /**
   * Keeps all in one transaction; if that fails, each by itself, so that none is lost for another. Throws the last failure.
   * Returns those that were not added to their conversations.
   */
  keepAll(responses: readonly KeptResponse[], now: Ms): readonly NotAdded[] {
    try {
      return this.#keepTogether(responses, now);
    } catch (thrown) {
      if (responses.length === 1 || mayRetry(thrown)) throw thrown; // a busy or full disk is so for all of them
      let failure: unknown = null;
      const left: NotAdded[] = [];
      for (const response of responses) {
        try {
          left.push(...this.#keepTogether([response], now));
        } catch (again) {
          failure = again;
        }
      }
      if (failure !== null) throw failure;
      return left;
    }
  }

  /** Keeps them, and lets an account's oldest go where its share is full. One that is larger than the share is not kept. */
  #keepTogether(responses: readonly KeptResponse[], now: Ms): readonly NotAdded[] {
    const { insert, addToUse, makeUse } = this.#statements;
    return this.#database.transaction(() => {
      const left: NotAdded[] = [];
      // Summed, so that an account which keeps many at once costs one update and one look at its limits.
      const added = new Map<AccountId, { responses: number; bytes: number }>();
      for (const response of responses) {
        const { account, id, previousId, conversation = null, input, output, settings } = response;
        const whole = this.withReferred(account, input, now);
        if (conversation !== null) {
          const refusal =
            whole === "too_large"
              ? refuse("body_too_large")
              : this.converse(account, conversation.id, answerOf(response, whole), now);
          if (isRefusal(refusal)) left.push(notAdded(response, refusal));
        }
        if (whole === "too_large" || conversation?.only === true) continue;
        const texts = [whole, output, settings] as const;
        const bytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
        if (bytes > this.limits.accountBytesMax) continue;
        insert.run(id, account, previousId, now, bytes, ...texts);
        const sum = added.get(account);
        if (sum === undefined) added.set(account, { responses: 1, bytes });
        else {
          sum.responses += 1;
          sum.bytes += bytes;
        }
      }
      // Nearly always the row is there. With one look at all limits a response costs 0.9 of what it does with upserts.
      for (const [account, { responses, bytes }] of added) {
        if (addToUse.run(responses, bytes, account).changes === 0) makeUse.run(account, responses, bytes);
      }
      this.#shortenAll([...added.keys()]);
      return left;
    })();
  }

  /** Does a step of a conversation, which is the newest of the account's then. */
  converse(account: AccountId, id: string, step: ConversationStep, now: Ms): string | Refusal {
    const { response, rewrite, addToUse } = this.#statements;
    return this.#database.transaction(() => {
      const before = response.get(account, id, this.#oldestKept(now));
      const done = conversed(id, before, step, this.limits.conversationBytesMax);
      if (isRefusal(done) || done.after === null) return isRefusal(done) ? done : done.reply;
      const bytes = conversationBytes(done.after);
      if (bytes > this.limits.accountBytesMax) return conversationFull;
      rewrite.run(now, bytes, done.after.input, done.after.settings, id);
      addToUse.run(0, bytes - conversationBytes(before!), account);
      this.#shortenAll([account]);
      return done.reply;
    })();
  }

  #shortenAll(accounts: readonly AccountId[]): void {
    const { accountCountMax, accountBytesMax } = this.limits;
    for (const use of this.#statements.full.all(JSON.stringify(accounts), accountCountMax, accountBytesMax)) {
      this.#shorten(use);
    }
  }

  #shorten({ account, responses, bytes }: Use): void {
    const { accountBytesMax, accountCountMax } = this.limits;
    for (; bytes > accountBytesMax || responses > accountCountMax; responses -= 1) {
      bytes -= this.#remove(this.#statements.oldest.get(account)!.id);
    }
  }

  /** `too_large` where the conversation, and what each reference stands for, are together larger than the limit. */
  find(account: AccountId, previousId: string | null, itemIds: readonly string[], now: Ms): EarlierTexts | "too_large" {
    const chain = previousId === null ? nothing : this.#conversation(account, previousId, now);
    if (chain === "too_large") return chain;
    const { conversation } = chain;
    const lengthMax = this.limits.conversationBytesMax - (conversation?.length ?? 0);
    const found = this.#items(account, itemIds, lengthMax, now);
    if (found === "too_large") return found;
    return { ...chain, items: `[${[...found.texts.values()].join(",")}]`, itemsBytes: found.bytes };
  }

  /** The response object as JSON text. */
  response(account: AccountId, id: string, now: Ms): string | null {
    const row = this.#statements.response.get(account, id, this.#oldestKept(now));
    return row === null ? null : responseText(row);
  }

  input(account: AccountId, id: string, page: ItemPage, now: Ms): ReturnType<InputItems["page"]> {
    return this.#inputItems.page({ account, responseId: id, oldestKept: this.#oldestKept(now) }, page);
  }

  /** False where the account has no such response. */
  delete(account: AccountId, id: string, now: Ms): boolean {
    const mine = this.#statements.response.get(account, id, this.#oldestKept(now)) !== null;
    if (mine) this.#database.transaction(() => this.#remove(id))();
    return mine;
  }

  /** Removes all of an account's, and with the log what of it went before: the file has overwritten all of that. */
  erase(account: AccountId): void {
    const { eraseResponses, eraseUse } = this.#statements;
    this.#database.transaction(() => {
      eraseResponses.run(account);
      eraseUse.run(account);
    })();
    this.#database.run("PRAGMA incremental_vacuum"); // no free page stays, whatever is in it
    this.#database.run("PRAGMA wal_checkpoint(TRUNCATE)"); // the log has what the file has no more
  }

  /**
   * Removes some responses that are too old, and gives some of their room back to the disk. Returns whether there is
   * more to do; a slice is at most `sliceBytes` large, or one response.
   */
  expire(now: Ms, sliceBytes: number): boolean {
    const { expired, freePages, pageSize } = this.#statements;
    let bytes = 0;
    this.#database.transaction(() => {
      while (bytes < sliceBytes) {
        const oldest = expired.get(this.#oldestKept(now));
        if (oldest === null) break;
        this.#remove(oldest.id);
        bytes += oldest.bytes + rowBytes;
      }
    })();
    const { page_size: pageBytes } = pageSize.get()!;
    this.#database.run(`PRAGMA incremental_vacuum(${Math.ceil(sliceBytes / pageBytes)})`);
    return bytes >= sliceBytes || freePages.get()!.freelist_count > 0;
  }

  /** Gives its bytes. */
  #remove(id: string): number {
    const { remove, addToUse } = this.#statements;
    const { account_id: account, bytes } = remove.get(id)!;
    addToUse.run(-1, -bytes, account);
    return bytes;
  }

  #oldestKept(now: Ms): Ms {
    return now - this.limits.keepMs;
  }

  /** From the last response back to the first; ids of a chain are ours, and each is younger than the one before. */
  #conversation(account: AccountId, lastId: string, now: Ms): Chain | "too_large" {
    const lists: string[] = [];
    let characters = 0;
    for (let id: string | null = lastId; id !== null;) {
      const row = this.#statements.response.get(account, id, this.#oldestKept(now));
      if (row === null) return { conversation: null, missingId: id };
      lists.push(row.output, row.input);
      characters += row.output.length + row.input.length;
      if (characters > this.limits.conversationBytesMax) return "too_large";
      id = row.previous_id;
    }
    const items = lists.reverse().map((list) => list.slice(1, -1));
    return { conversation: `[${items.filter((list) => list !== "").join(",")}]`, missingId: null };
  }

  /**
   * Items by the ids that replies and lists of input items gave them. `too_large` where what the ids stand for is
   * longer than `lengthMax`: an id of 40 bytes may name an item of megabytes, and name it a thousand times. What is read
   * to find them is held to the same.
   */
  #items(account: AccountId, itemIds: readonly string[], lengthMax: number, now: Ms): FoundItems | "too_large" {
    const times = new Map<string, number>();
    for (const id of itemIds) times.set(id, (times.get(id) ?? 0) + 1);
    const oldestKept = this.#oldestKept(now);
    const texts = new Map<string, string>();
    let length = 0;
    let bytes = 0;
    let readLength = 0;
    for (const [responseId, ids] of Map.groupBy(times.keys(), responseIdOf)) {
      if (responseId === null) continue;
      const of = { account, responseId, oldestKept };
      const [inputIds, outputIds] = [ids.filter(isOfInput), ids.filter((id) => !isOfInput(id))];
      if (inputIds.length > 0) readLength += this.#inputItems.lengthOf(of);
      const row = outputIds.length === 0 ? null : this.#statements.response.get(account, responseId, oldestKept);
      readLength += row?.output.length ?? 0;
      if (readLength > lengthMax) return "too_large";
      if (inputIds.length > 0)
        for (const [id, text] of this.#inputItems.named(of, new Set(inputIds))) texts.set(id, text);
      for (const item of row === null ? [] : (JSON.parse(row.output) as Item[])) {
        if (times.has(item.id as string)) texts.set(item.id as string, JSON.stringify(item));
      }
      for (const id of ids) {
        const text = texts.get(id) ?? "";
        length += text.length * times.get(id)!;
        bytes += Buffer.byteLength(text) * times.get(id)!;
      }
      if (length > lengthMax) return "too_large";
    }
    return { texts, bytes };
  }

  /**
   * `input` with the items that it refers to in place of the references, so that it stays whole when those expire.
   * `too_large` where it would be larger than a conversation may be.
   */
  withReferred(account: AccountId, input: string, now: Ms): string | "too_large" {
    if (!input.includes('"item_reference"')) return input;
    const items = JSON.parse(input) as Item[];
    const referred = items.filter(({ type }) => type === "item_reference").map(({ id }) => id as string);
    if (referred.length === 0) return input;
    const found = this.#items(account, referred, this.limits.conversationBytesMax, now);
    if (found === "too_large") return found;
    const texts = items.map((item) => {
      const text = item.type === "item_reference" ? found.texts.get(item.id as string) : undefined;
      return text ?? JSON.stringify(item);
    });
    return `[${texts.join(",")}]`;
  }
}

type Use = { account: AccountId; responses: number; bytes: number };
type Row = { previous_id: string | null; input: string; output: string; settings: string };

function prepare(database: Database) {
  return {
    insert: database.prepare<
      unknown,
      [string, AccountId, string | null, Ms, number, input: string, output: string, settings: string]
    >(`
      INSERT INTO responses (id, account_id, previous_id, kept_at, bytes, input, output, settings)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?)`),
    rewrite: database.prepare<unknown, [Ms, bytes: number, input: string, settings: string, id: string]>(`
      UPDATE responses SET sequence = (SELECT max(sequence) + 1 FROM responses), kept_at = ?, bytes = ?, input = ?,
        settings = ? WHERE id = ?`),
    addToUse: database.prepare<unknown, [responses: number, bytes: number, AccountId]>(
      "UPDATE responses_use SET responses = responses + ?, bytes = bytes + ? WHERE account_id = ?",
    ),
    makeUse: database.prepare<unknown, [AccountId, responses: number, bytes: number]>(
      "INSERT INTO responses_use (account_id, responses, bytes) VALUES (?, ?, ?)",
    ),
    /** Of those accounts, a JSON array, the ones whose share is too full. */
    full: database.prepare<Use, [accounts: string, countMax: number, bytesMax: number]>(`
      SELECT account_id AS account, responses, bytes FROM json_each(?1) CROSS JOIN responses_use ON account_id = value
      WHERE responses > ?2 OR bytes > ?3`),
    oldest: database.prepare<{ id: string }, [AccountId]>(
      "SELECT id FROM responses WHERE account_id = ? ORDER BY sequence LIMIT 1",
    ),
    response: database.prepare<Row, [AccountId, string, Ms]>(
      "SELECT previous_id, input, output, settings FROM responses WHERE account_id = ? AND id = ? AND kept_at >= ?",
    ),
    remove: database.prepare<{ account_id: AccountId; bytes: number }, [string]>(
      "DELETE FROM responses WHERE id = ? RETURNING account_id, bytes",
    ),
    eraseResponses: database.prepare<unknown, [AccountId]>("DELETE FROM responses WHERE account_id = ?"),
    eraseUse: database.prepare<unknown, [AccountId]>("DELETE FROM responses_use WHERE account_id = ?"),
    expired: database.prepare<{ id: string; bytes: number }, [Ms]>(
      "SELECT id, bytes FROM responses WHERE kept_at < ? ORDER BY kept_at LIMIT 1",
    ),
    freePages: database.prepare<{ freelist_count: number }, []>("PRAGMA freelist_count"),
    pageSize: database.prepare<{ page_size: number }, []>("PRAGMA page_size"),
  };
}
