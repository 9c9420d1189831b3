// The one table of the console: sorted by a click on a heading, in pages, with columns that people choose. What is shown stands
// in the page's address, so back and forward work and links can be shared; the columns are remembered in this browser. The
// server sorts large sets and tells how many rows there are; small ones are sorted here.
import type { ComponentChildren, VNode } from "preact";
import { useId, useMemo, useRef, useState } from "preact/hooks";
import { count } from "../format.ts";
import { language } from "../language.ts";
import { changeQuery, place } from "../route.ts";
import { t, type TextKey } from "../texts.ts";
import { Button } from "./button.tsx";
import { Icon } from "./icons.tsx";
import { Select } from "./select.tsx";

type SortValue = string | number | boolean | null;

export type DataColumn<Row> = Readonly<{
  /** In the address and in the browser's memory; for a server that sorts, its name for it. */
  id: string;
  /** `said`: of something that people named. */
  name: TextKey | Readonly<{ said: string }>;
  cell: (row: Row) => ComponentChildren;
  /** What it is sorted by; "server": the server does it. */
  sort?: "server" | ((row: Row) => SortValue);
  /** Figures stand at the end of their column, and the largest come first. */
  isFigure?: boolean;
  /** Classes of its cells. */
  look?: string;
  /** Only those who choose it see it. */
  isOptional?: boolean;
  /** Left out in smaller windows, unless somebody chose it. */
  room?: "wide" | "widest";
  /** Buttons, under a heading for screen readers alone. */
  isActions?: boolean;
}>;

/** A column of numbers; null is a dash. */
export const figureColumn = <Row,>(
  id: string,
  name: DataColumn<Row>["name"],
  of: (row: Row) => number | null,
  words: (value: number) => string = count,
  more: Partial<DataColumn<Row>> = {},
): DataColumn<Row> => ({
  ...{ id, name, isFigure: true, sort: of },
  cell: (row) => {
    const value = of(row);
    return value === null ? "–" : words(value);
  },
  ...more,
});

const nameOf = ({ name }: Pick<DataColumn<never>, "name">): string => (typeof name === "string" ? t(name) : name.said);

/**
 * What the address says of a table. `sort` is a column's id, behind a "-" if the largest come first.
 * @public
 */
export type TableAsked = Readonly<{ sort: string; page: number }>;

export const tableRows = 50;
const pageMax = 99_999_999;
/** With fewer columns there is nothing to choose. */
const choosableColumns = 5;
/** A list that one sees at a glance: no range, and nothing to choose. */
const glanceRows = 10;

/**
 * `prefix`: of its parameters, where a page has several tables. An address may say anything: what is unknown is ignored.
 */
export function tableAsked(
  columns: readonly Pick<DataColumn<never>, "id" | "sort">[],
  first: string,
  prefix = "",
): TableAsked {
  const { query } = place.value;
  const sort = query.get(`${prefix}sort`) ?? "";
  const isKnown = columns.some((column) => column.sort !== undefined && column.id === sort.replace(/^-/, ""));
  const page = query.get(`${prefix}page`) ?? "";
  return { sort: isKnown ? sort : first, page: /^[1-9][0-9]{0,7}$/.test(page) ? Math.min(pageMax, Number(page)) : 1 };
}

/** Of a list whose length nobody knows: where the page begins that the address names. */
export const cursorAsked = (prefix = ""): string | undefined => place.value.query.get(`${prefix}after`) ?? undefined;

/** Where people came from to each cursor. */
const earlier = new Map<string, string | undefined>();

type DataTableProps<Row> = Readonly<{
  /** Its name in the browser's memory; without one, nobody chooses its columns. */
  name?: string;
  caption: string;
  columns: readonly DataColumn<Row>[];
  /** All of them, or with `server` those of the page. */
  rows: readonly Row[];
  rowKey: (row: Row) => string | number;
  /** What it is sorted by at first. */
  first: string;
  prefix?: string;
  /** How many rows there are, and which page these are. */
  server?: Readonly<{ total: number; page: number }>;
  /** Of a list whose length nobody knows: where its next page begins; null on the last. */
  next?: string | null;
  /** Of all rows, by column; it stays on top. */
  sums?: (column: string) => ComponentChildren;
  /** Rows are chosen by their keys, for what stands in `tools`. */
  marks?: Marks<Row>;
  tools?: ComponentChildren;
  /** The table's class. */
  look?: string;
}>;

type Key = string | number;
type Marks<Row> = Readonly<{
  marked: ReadonlySet<Key>;
  onMark: (marked: ReadonlySet<Key>) => void;
  labelOf: (row: Row) => string;
}>;
type Chosen = Readonly<Record<string, boolean>>;

export function DataTable<Row>(props: DataTableProps<Row>): VNode {
  const { name, caption, columns, rows, first, prefix = "", server, next, tools } = props;
  const box = useRef<HTMLDivElement>(null);
  const [chosen, setChosen] = useState(() => remembered(name));
  const { sort, page: askedPage } = tableAsked(columns, first, prefix);
  const sorted = useMemo(
    () => (server === undefined ? inOrder(rows, columns, sort) : rows),
    [rows, sort, server === undefined],
  );
  const total = server?.total ?? rows.length;
  const pages = next === undefined ? Math.max(1, Math.ceil(total / tableRows)) : 1;
  const page = Math.min(pages, server?.page ?? askedPage);
  const start = (page - 1) * tableRows;
  const drawn = server === undefined && next === undefined ? sorted.slice(start, start + tableRows) : sorted;
  const shown = columns.filter(({ id, isOptional }, at) => at === 0 || (chosen[id] ?? isOptional !== true));

  const sortBy = (by: string): void => changeQuery({ [`${prefix}sort`]: by, [`${prefix}page`]: null });
  const turn = (to: Turned): void => {
    changeQuery(to);
    if (box.current !== null && box.current.getBoundingClientRect().top < 0) box.current.scrollIntoView();
  };
  const choose = (choice: Chosen): void => {
    setChosen(choice);
    remember(name, choice);
  };
  const isShort = next === undefined && total <= glanceRows;
  const sortable = isShort ? [] : columns.filter((column) => column.sort !== undefined);
  const hasChoice = columns.some(({ isOptional }) => isOptional) || (columns.length >= choosableColumns && !isShort);
  const isChoosable = name !== undefined && hasChoice;
  const hasTools = isChoosable || pages > 1 || Boolean(tools);

  return (
    <div class="data-table" ref={box}>
      {(hasTools || sortable.length > 0) && (
        <div class={`table-tools ${hasTools ? "" : "only-cards"}`}>
          <span class="quiet small-text" role="status">
            {total > 0 &&
              next === undefined &&
              t("table.range", { start: start + 1, end: start + drawn.length, total })}
          </span>
          {tools}
          {sortable.length > 0 && (
            <span class="only-cards">
              <Select
                aria-label={t("table.sort_by")}
                value={sort}
                options={sortable.flatMap((column) =>
                  directions(column).map((by) => [by, `${nameOf(column)} ${arrow(by)}`] as const),
                )}
                onValue={sortBy}
              />
            </span>
          )}
          {isChoosable && <ColumnChoice columns={columns} shown={shown} chosen={chosen} onChoose={choose} />}
        </div>
      )}
      <Grid {...props} {...{ drawn, shown, chosen, sort }} onSort={sortBy} />
      <Foot {...{ caption, prefix, page, pages, next }} onTurn={turn} />
    </div>
  );
}

type GridProps<Row> = DataTableProps<Row> &
  Readonly<{
    drawn: readonly Row[];
    shown: readonly DataColumn<Row>[];
    chosen: Chosen;
    sort: string;
    onSort: (sort: string) => void;
  }>;

function Grid<Row>({
  caption,
  rowKey,
  sums,
  marks,
  look = "",
  drawn,
  shown,
  chosen,
  sort,
  onSort,
}: GridProps<Row>): VNode {
  const keys = drawn.map(rowKey);
  const cells = (contentOf: (column: DataColumn<Row>) => ComponentChildren): VNode[] =>
    shown.map((column, at) => (
      <td
        key={column.id}
        class={classOf(column, chosen)}
        data-name={at === 0 || column.isActions ? undefined : nameOf(column)}
      >
        {contentOf(column)}
      </td>
    ));
  return (
    <div class="table-scroll">
      <table class={`data ${look}`.trim()}>
        <caption class="for-readers">{caption}</caption>
        <thead>
          <tr>
            {marks !== undefined && (
              <th scope="col" class="mark-cell">
                <MarkBox label={t("table.select_all")} keys={keys} marks={marks} />
              </th>
            )}
            {shown.map((column) => (
              <Heading key={column.id} column={column} sort={sort} chosen={chosen} onSort={onSort} />
            ))}
          </tr>
        </thead>
        <tbody>
          {sums !== undefined && <tr class="total">{cells(({ id }) => sums(id))}</tr>}
          {drawn.map((row, at) => (
            <tr key={keys[at]} class={marks?.marked.has(keys[at]!) === true ? "marked" : undefined}>
              {marks !== undefined && (
                <td class="mark-cell">
                  <MarkBox label={t("table.select", { name: marks.labelOf(row) })} keys={[keys[at]!]} marks={marks} />
                </td>
              )}
              {cells(({ cell }) => cell(row))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

type MarkBoxProps<Row> = Readonly<{ label: string; keys: readonly Key[]; marks: Marks<Row> }>;

const MarkBox = <Row,>({ label, keys, marks: { marked, onMark } }: MarkBoxProps<Row>): VNode => (
  <input
    type="checkbox"
    aria-label={label}
    checked={keys.length > 0 && keys.every((key) => marked.has(key))}
    onChange={(event) => {
      const others = [...marked].filter((key) => !keys.includes(key));
      onMark(new Set(event.currentTarget.checked ? [...others, ...keys] : others));
    }}
  />
);

function classOf({ isFigure, look, room, id, isActions }: DataColumn<never>, chosen: Chosen): string | undefined {
  const isLeftOut = room !== undefined && chosen[id] !== true;
  const classes = [isFigure && "number", isActions && "actions-cell", look, isLeftOut && `${room}-only`];
  return classes.filter(Boolean).join(" ") || undefined;
}

/** The first click's order, and the second's. */
const directions = ({ id, isFigure }: DataColumn<never>): readonly [string, string] =>
  isFigure === true ? [`-${id}`, id] : [id, `-${id}`];
const arrow = (sort: string): string => (sort.startsWith("-") ? "↓" : "↑");

type HeadingProps<Row> = Readonly<{
  column: DataColumn<Row>;
  sort: string;
  chosen: Chosen;
  onSort: (sort: string) => void;
}>;

function Heading<Row>({ column, sort, chosen, onSort }: HeadingProps<Row>): VNode {
  const { id, isActions } = column;
  const [one, other] = directions(column);
  const isSorted = sort === one || sort === other;
  return (
    <th
      scope="col"
      class={classOf({ ...column, look: undefined }, chosen)}
      aria-sort={isSorted ? (sort === id ? "ascending" : "descending") : undefined}
    >
      {column.sort === undefined ? (
        <span class={isActions ? "for-readers" : undefined}>{nameOf(column)}</span>
      ) : (
        <button type="button" class="sort-button" onClick={() => onSort(sort === one ? other : one)}>
          {nameOf(column)}
          <span aria-hidden="true">{isSorted ? arrow(sort) : "↕"}</span>
        </button>
      )}
    </th>
  );
}

/** Whether it is shown depends on the window, until somebody chooses. */
const isShownWithRoom = ({ id, room, isOptional }: DataColumn<never>, chosen: Chosen): boolean =>
  room !== undefined && isOptional !== true && chosen[id] === undefined;

type ColumnChoiceProps<Row> = Readonly<{
  columns: readonly DataColumn<Row>[];
  shown: readonly DataColumn<Row>[];
  chosen: Chosen;
  onChoose: (chosen: Chosen) => void;
}>;

function ColumnChoice<Row>({ columns, shown, chosen, onChoose }: ColumnChoiceProps<Row>): VNode {
  const id = useId();
  return (
    <>
      <button type="button" class="button small columns-button" popovertarget={id}>
        <Icon name="columns" size={14} /> {t("table.columns")}
      </button>
      <div class="columns-menu" id={id} popover role="group" aria-label={t("table.columns")}>
        {columns
          .filter(({ isActions }, at) => at > 0 && isActions !== true)
          .map((column) => (
            <label key={column.id} class="check">
              <input
                type="checkbox"
                checked={chosen[column.id] ?? (column.room === undefined && shown.includes(column))}
                indeterminate={isShownWithRoom(column, chosen)}
                onChange={(event) => onChoose({ ...chosen, [column.id]: event.currentTarget.checked })}
              />
              {nameOf(column)}
            </label>
          ))}
        <Button caption={t("table.reset_columns")} class="link-button" onClick={() => onChoose({})} />
      </div>
    </>
  );
}

type Turned = Readonly<Record<string, string | null>>;
type FootProps = Readonly<{
  caption: string;
  prefix: string;
  page: number;
  pages: number;
  next: string | null | undefined;
  onTurn: (turned: Turned) => void;
}>;

/** Nothing where there is only one page. */
function Foot({ caption, prefix, page, pages, next, onTurn }: FootProps): VNode | null {
  const after = cursorAsked(prefix);
  // It is the page's own while that one loads.
  const isOwn = next === after;
  if (next != null && !isOwn) earlier.set(next, after);
  const to = (number: number): Turned => ({ [`${prefix}page`]: number === 1 ? null : String(number) });
  const toCursor = (cursor: string | null): Turned => ({ [`${prefix}after`]: cursor });
  const turns: readonly (readonly [TextKey, Turned | false])[] =
    next === undefined
      ? [
          ["table.first", page > 1 && to(1)],
          ["table.previous", page > 1 && to(page - 1)],
          ["table.next", page < pages && to(page + 1)],
          ["table.last", page < pages && to(pages)],
        ]
      : [
          ["table.newer", after !== undefined && toCursor(earlier.get(after) ?? null)],
          ["table.older", next !== null && !isOwn && toCursor(next)],
        ];
  if (turns.every(([, turned]) => turned === false)) return null;
  return (
    <nav class="table-foot" aria-label={t("table.pages", { caption })}>
      <span class="quiet">{next === undefined && t("table.page", { page, pages })}</span>
      <div class="row">
        {turns.map(([name, turned]) => (
          <Button
            key={name}
            caption={t(name)}
            class="button small"
            disabled={turned === false}
            onClick={() => turned && onTurn(turned)}
          />
        ))}
      </div>
    </nav>
  );
}

/** Equal rows keep their order, and rows without a value come last both ways. */
function inOrder<Row>(rows: readonly Row[], columns: readonly DataColumn<Row>[], sort: string): readonly Row[] {
  const column = columns.find(({ id }) => id === sort.replace(/^-/, ""));
  const by = column?.sort;
  if (typeof by !== "function") return rows;
  const sign = sort.startsWith("-") ? -1 : 1;
  return rows
    .map((row) => [by(row), row] as const)
    .sort(([one], [other]) => {
      if (one === other) return 0;
      if (one === null) return 1;
      if (other === null) return -1;
      if (typeof one === "string" && typeof other === "string") return sign * words.compare(one, other);
      return sign * (Number(one) - Number(other));
    })
    .map(([, row]) => row);
}

const words = new Intl.Collator(language, { numeric: true, sensitivity: "base" });

const keyOf = (name: string | undefined): string => `tollgate-columns ${name}`;

/** The choices that differ from the first ones. Empty if the browser keeps nothing. */
function remembered(name: string | undefined): Chosen {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(keyOf(name)) ?? "{}");
    if (typeof kept !== "object" || kept === null) return {};
    return Object.fromEntries(Object.entries(kept).filter(([, isOn]) => typeof isOn === "boolean"));
  } catch {
    return {};
  }
}

function remember(name: string | undefined, chosen: Chosen): void {
  try {
    if (Object.keys(chosen).length === 0) localStorage.removeItem(keyOf(name));
    else localStorage.setItem(keyOf(name), JSON.stringify(chosen));
  } catch {
    // The next visit begins with the first columns.
  }
}
