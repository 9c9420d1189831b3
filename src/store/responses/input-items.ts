// Lists the input items of a stored response, as SDKs page through them. SQLite does it: an input may be 32 MiB of
// anything, and items are cut out as text without ever becoming objects, here or on the main thread.
import type { Database } from "bun:sqlite";
import type { ItemPage } from "../../dialects/stored-responses.ts";
import type { AccountId, Ms } from "../../core/types.ts";

/** A response of an account that is not older than `oldestKept`. */
export type ResponsePlace = Readonly<{ account: AccountId; responseId: string; oldestKept: Ms }>;

const prefixes: Readonly<Record<string, string>> = {
  message: "msg",
  reasoning: "rs",
  function_call: "fc",
  function_call_output: "fco",
  custom_tool_call: "ctc",
  custom_tool_call_output: "ctco",
};

export const prefixOf = (type: string): string => prefixes[type] ?? "item";

type Row = Readonly<{
  place: number;
  text: string;
  id: string | null;
  type: string | null;
  role: unknown;
  contentType: string | null;
}>;
type Listed = Readonly<{ id: string; text: string }>;

export class InputItems {
  readonly #statements: ReturnType<typeof prepare>;

  constructor(database: Database) {
    this.#statements = prepare(database);
  }

  /** The list object as JSON text; null where there is no such response. */
  page(of: ResponsePlace, { limit, order, after }: ItemPage): Readonly<{ body: string }> | "unknown_after" | null {
    const count = this.#statements.count.get(...keyOf(of))?.count ?? null;
    if (count === null) return null;
    const behind = after === null ? null : this.#placeOf(of, after);
    if (after !== null && behind === null) return "unknown_after";
    const newest = order === "desc";
    const last = newest ? (behind ?? count) - 1 : Math.min((behind ?? -1) + limit, count - 1);
    const first = newest ? Math.max(last - limit + 1, 0) : (behind ?? -1) + 1;
    const listed = this.#listed(of, this.#between(of, first, last));
    if (newest) listed.reverse();
    const ends = { first_id: listed[0]?.id ?? null, last_id: listed.at(-1)?.id ?? null };
    const rest = JSON.stringify({ ...ends, has_more: newest ? first > 0 : last < count - 1 });
    return { body: `{"object":"list","data":[${listed.map(({ text }) => text).join(",")}],${rest.slice(1)}` };
  }

  /** Those of `ids` that a page gave to items without ids of their own, with the items' texts. */
  named(of: ResponsePlace, ids: ReadonlySet<string>): ReadonlyMap<string, string> {
    const found = new Map<string, string>();
    const places = JSON.stringify([...ids].map(indexIn));
    for (const row of this.#statements.some.all(...keyOf(of), places)) {
      const id = ourId(of, row);
      if (ids.has(id)) found.set(id, this.#withId(row, id));
    }
    return found;
  }

  /** Characters of all items; 0 where there is no such response. */
  lengthOf(of: ResponsePlace): number {
    return this.#statements.length.get(...keyOf(of))?.length ?? 0;
  }

  #between(of: ResponsePlace, first: number, last: number): Row[] {
    return first > last ? [] : this.#statements.between.all(...keyOf(of), first, last);
  }

  #placeOf(of: ResponsePlace, id: string): number | null {
    const index = indexIn(id);
    const [row] = this.#between(of, index, index);
    if (row !== undefined && ourId(of, row) === id) return index;
    return this.#statements.firstNamed.get(...keyOf(of), id)!.place;
  }

  /** In a list an id stands for one item, or paging would go round: the second of the same id gets one of ours. */
  #listed(of: ResponsePlace, rows: readonly Row[]): Listed[] {
    const ids = rows.flatMap(({ id }) => id ?? []);
    const first = rows[0]?.place ?? 0;
    const before =
      first === 0 || ids.length === 0
        ? []
        : this.#statements.namedBefore.all(...keyOf(of), first, JSON.stringify(ids)).map(({ id }) => id);
    const seen = new Set(before);
    return rows.map((row) => {
      const id = row.id === null || seen.has(row.id) ? ourId(of, row) : row.id;
      seen.add(id);
      return { id, text: this.#withId(row, id) };
    });
  }

  /** Clients may leave out an item's id and type, and write a text for its parts; readers of the list want all three. */
  #withId(row: Row, id: string): string {
    const type = row.type ?? "message";
    const isText = type === "message" && row.contentType === "text";
    if (row.id === id && row.type !== null && !isText) return row.text;
    const { complete, completeText } = this.#statements;
    if (!isText) return complete.get(row.text, id, type)!.text;
    const part = row.role === "assistant" ? { type: "output_text", annotations: [] } : { type: "input_text" };
    return completeText.get(row.text, id, type, JSON.stringify(part))!.text;
  }
}

/** The place in the input that an id of ours names, or one that no item has. */
const indexIn = (id: string): number => Number(/_in(\d{1,9})$/.exec(id)?.[1] ?? -1);

const ourId = ({ responseId }: ResponsePlace, { type, place }: Row): string =>
  `${prefixOf(type ?? "message")}_${responseId.slice("resp_".length)}_in${place}`;

const keyOf = ({ account, responseId, oldestKept }: ResponsePlace): [AccountId, string, Ms] => [
  account,
  responseId,
  oldestKept,
];

function prepare(database: Database) {
  const response = "responses.account_id = ?1 AND responses.id = ?2 AND responses.kept_at >= ?3";
  const items = "responses, json_each(responses.input) AS item";
  const id = "item.value ->> '$.id'";
  // Materialized: each use of an item's text would write and parse it again.
  const rows = (wanted: string) => `
    WITH row AS MATERIALIZED (
      SELECT item.key AS place, item.value AS text FROM ${items} WHERE ${response} AND ${wanted}
    )
    SELECT place, text,
      CASE json_type(text, '$.id') WHEN 'text' THEN text ->> '$.id' END AS id,
      CASE json_type(text, '$.type') WHEN 'text' THEN text ->> '$.type' END AS type,
      text ->> '$.role' AS role, json_type(text, '$.content') AS contentType
    FROM row ORDER BY place`;
  type Key = [AccountId, string, Ms];
  return {
    count: database.prepare<{ count: number }, Key>(
      `SELECT json_array_length(input) AS count FROM responses WHERE ${response}`,
    ),
    length: database.prepare<{ length: number }, Key>(
      `SELECT length(input) AS length FROM responses WHERE ${response}`,
    ),
    between: database.prepare<Row, [...Key, first: number, last: number]>(rows("item.key BETWEEN ?4 AND ?5")),
    some: database.prepare<Row, [...Key, places: string]>(rows("item.key IN (SELECT value FROM json_each(?4))")),
    firstNamed: database.prepare<{ place: number | null }, [...Key, string]>(
      `SELECT min(item.key) AS place FROM ${items} WHERE ${response} AND ${id} = ?4`,
    ),
    namedBefore: database.prepare<{ id: string }, [...Key, before: number, ids: string]>(
      `SELECT DISTINCT ${id} AS id FROM ${items}
       WHERE ${response} AND item.key < ?4 AND ${id} IN (SELECT value FROM json_each(?5))`,
    ),
    complete: database.prepare<{ text: string }, [text: string, id: string, type: string]>(
      "SELECT json_set(?1, '$.id', ?2, '$.type', ?3) AS text",
    ),
    completeText: database.prepare<{ text: string }, [text: string, id: string, type: string, part: string]>(
      `SELECT json_set(?1, '$.id', ?2, '$.type', ?3,
        '$.content', json_array(json_set(?4, '$.text', ?1 -> '$.content'))) AS text`,
    ),
  };
}
