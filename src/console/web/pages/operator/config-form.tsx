// The form of a row of the configuration file, or of a table, made from the schema that the file is checked with. What is
// wrong with a value stands at its field.
import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { ConfigEdit, ConfigShown, ConfigTable } from "../../../api/server.ts";
import type { Faults } from "../../../api/shapes.ts";
import { Button } from "../../parts/button.tsx";
import { Field, LongField, TextField } from "../../parts/field.tsx";
import { Select } from "../../parts/select.tsx";
import { said } from "../../phrases.ts";
import { t, type TextKey } from "../../texts.ts";

type ConfigKey = ConfigTable["keys"][number];
type Fault = Faults[number];
type Schema = Readonly<{
  type?: string;
  const?: unknown;
  anyOf?: readonly Schema[];
  items?: Schema;
  properties?: Readonly<Record<string, Schema>>;
  patternProperties?: Readonly<Record<string, Schema>>;
  description?: string;
}>;
/** By key, as TOML; empty: none; null: what is in the file goes. */
type Typed = Readonly<Record<string, string | null>>;

/** `own`: what was typed, and in which row. */
export type Wish = Readonly<{
  changes: Pick<ConfigEdit, "set" | "add" | "remove">;
  own: Readonly<{ table: string; row: string; typed: Typed }> | null;
  /** Whether the form has a field for it. */
  isAbout(fault: Fault): boolean;
}>;

export function valuesIn({ tables }: ConfigShown, own: Wish["own"]): Readonly<Record<string, string>> {
  const table = tables.find(({ name }) => name === own?.table);
  const row = table?.is_list === true ? table.rows.find(({ name }) => name === own?.row) : table?.rows[0];
  return row?.values ?? {};
}

type RowFormProps = Readonly<{
  table: ConfigTable;
  /** Empty: a new one. */
  row: string;
  isFixed: boolean;
  faults: Faults;
  busy: boolean;
  onWish: (wish: Wish) => void;
  onBack: () => void;
}>;

export function RowForm({ table, row, isFixed, faults, busy, onWish, onBack }: RowFormProps): VNode {
  const { name, is_list: isList, rows } = table;
  const isNew = isList && row === "";
  const at = isNew ? rows.length : isList ? rows.findIndex((each) => each.name === row) : 0;
  const values = rows[at]?.values ?? {};
  const keys = table.keys.filter(({ name: key, fixed }) => fixed === null || key in values);
  const [typed, setTyped] = useState<Typed>({});
  const form = useRef<HTMLFormElement>(null);
  const { keyOf, errorOf, mend } = useErrors(table, at, keys, faults, form);
  const isFirst = ({ name: key, required }: ConfigKey): boolean => required || key in values || key === "url";
  const others = keys.filter((key) => !isFirst(key));
  const changed = Object.entries(typed).filter(([key, value]) => value !== (values[key] ?? ""));
  const fields = (some: readonly ConfigKey[]): VNode => (
    <div class="grid-2">
      {some.map((key) => (
        <KeyField
          key={key.name}
          of={key}
          isSet={key.name in values}
          isFixed={isFixed}
          error={errorOf(key.name)}
          typed={typed[key.name]}
          written={values[key.name] ?? ""}
          onValue={(value) => {
            setTyped({ ...typed, [key.name]: value });
            mend(key.name);
          }}
        />
      ))}
    </div>
  );
  const wrong = keys.filter(({ name: key }) => errorOf(key) !== null).length;
  return (
    <form
      ref={form}
      class="card stack-large"
      aria-label={`${name} ${row}`}
      onSubmit={(event) => {
        event.preventDefault();
        onWish({ ...wishOf(table, isNew ? null : row, changed), isAbout: (fault) => keyOf(fault) !== null });
      }}
    >
      <h2>{isNew ? t("config.new_row", { table: name }) : isList ? `${name}: ${row}` : name}</h2>
      {fields(keys.filter(isFirst))}
      {others.length > 0 && (
        <details open={others.some(({ name: key }) => key in typed || errorOf(key) !== null)}>
          <summary>{t("config.more")}</summary>
          {fields(others)}
        </details>
      )}
      <p class="form-error" role="alert" hidden={wrong === 0}>
        {wrong > 0 && t("config.wrong", { wrong })}
      </p>
      <footer class="row">
        <Button caption={t("config.back")} onClick={onBack} />
        <Button
          caption={t("config.review")}
          type="submit"
          class="button primary"
          busy={busy}
          disabled={changed.length === 0}
        />
      </footer>
    </form>
  );
}

/** `row` null: the row is new, and its name was typed, too. */
function wishOf(
  { name, row_key: rowKey, is_list: isList }: ConfigTable,
  row: string | null,
  changed: readonly (readonly [string, string | null])[],
): Omit<Wish, "isAbout"> {
  const typed = Object.fromEntries(changed);
  const own = row ?? (JSON.parse(typed[rowKey ?? ""] || '""') as string);
  const path = isList ? `${name}.${JSON.stringify(own)}` : name;
  const set = changed
    .filter(([key]) => row !== null || key !== rowKey)
    .map(([key, value]) => `${path}.${key}=${value ?? ""}`);
  return {
    changes: { ...(row === null ? { add: [path] } : {}), ...(set.length === 0 ? {} : { set }) },
    own: { table: name, row: own, typed },
  };
}

/** What is wrong with the values of a row, until they are changed. */
function useErrors(
  { name, is_list: isList }: ConfigTable,
  at: number,
  keys: readonly ConfigKey[],
  faults: Faults,
  form: { readonly current: HTMLFormElement | null },
) {
  /** Changed since it was found wrong. */
  const [mended, setMended] = useState<ReadonlySet<string>>(new Set());
  useEffect(() => {
    setMended(new Set());
    // Drawn by then, within a part that the error has opened.
    if (faults.length > 0)
      requestAnimationFrame(() => form.current?.querySelector<HTMLElement>("[aria-invalid]")?.focus());
  }, [faults]);

  /** Its key, where it is one of this row's. */
  const keyOf = ({ path: [of, ...rest] }: Fault): string | null => {
    const [first, second] = rest;
    const key = isList ? (first === at ? second : undefined) : first;
    return of === name && keys.some((each) => each.name === key) ? String(key) : null;
  };
  const errorOf = (key: string): string | null => {
    const own = mended.has(key) ? [] : faults.filter((fault) => keyOf(fault) === key);
    const problems = own.map(({ path, problem }) => [stepsIn(path.slice(isList ? 3 : 2)), problem].join(" ").trim());
    return problems.length === 0 ? null : problems.join("; ");
  };
  return { keyOf, errorOf, mend: (key: string) => setMended(new Set([...mended, key])) };
}

const stepsIn = (path: Fault["path"]): string =>
  path.map((step) => (typeof step === "number" ? `[${step + 1}]` : step)).join(".");

/** What a value may be, as TOML; null: other things, too. */
function choicesOf({ type, const: only, anyOf }: Schema): readonly string[] | null {
  if (type === "boolean") return ["true", "false"];
  if (only !== undefined) return [JSON.stringify(only)];
  const all = anyOf?.map(choicesOf) ?? [null];
  return all.every((each) => each !== null) ? all.flat() : null;
}

type KeyFieldProps = Readonly<{
  of: ConfigKey;
  isSet: boolean;
  isFixed: boolean;
  error: string | null;
  typed: string | null | undefined;
  /** As TOML; empty: it is not in the file, or a secret. */
  written: string;
  onValue: (value: string | null) => void;
}>;

function KeyField({ of, isSet, isFixed, error, typed, written, onValue }: KeyFieldProps): VNode {
  const isOut = typed === null;
  const value = isOut ? "" : (typed ?? written);
  const { name: label, about, otherwise, required, secret, fixed } = of;
  const schema = of.schema as Schema;
  const hints = [
    ...(secret && isSet ? [t("config.is_set")] : []),
    said(about),
    ...(required || otherwise === "" ? [] : [t("config.without", { otherwise: said(otherwise) })]),
    ...(fixed === null ? [] : [t("config.is_fixed", { why: said(fixed) })]),
  ];
  const readOnly = isFixed || fixed !== null;
  const hinted = (...more: readonly string[]): VNode => inCode([...hints, ...more].join(" "));
  const plain = { label, hint: hinted(), error, spellcheck: false, autocapitalize: "off" } as const;
  const line = { ...plain, readOnly, required: required && !secret };
  const choices = choicesOf(schema);
  if (choices !== null && !readOnly) {
    return (
      <Field label={label} hint={plain.hint} error={error}>
        {(control) => (
          <Select {...control} value={value} options={choices} all={t("config.not_said")} onValue={onValue} />
        )}
      </Field>
    );
  }
  const prices = schema.anyOf?.find(({ properties }) => properties !== undefined)?.properties;
  if (prices !== undefined && !readOnly) {
    return <PartsField {...{ label, hint: plain.hint, error, value, onValue }} parts={Object.keys(prices)} />;
  }
  const pairs = Object.values(schema.patternProperties ?? {}).some(({ type }) => type === "string");
  const lines = pairs ? pairLines : schema.items?.type === "string" ? itemLines : memberLines;
  if ((lines !== memberLines || schema.type === "object") && !readOnly) {
    return <LinesField {...{ ...plain, hint: hinted(t(lines.hint)), value, onValue }} as={lines} />;
  }
  if (schema.type === "number" || schema.type === "integer") {
    const inputMode = schema.type === "number" ? "decimal" : "numeric";
    return <TextField {...line} inputMode={inputMode} value={value} onValue={(text) => onValue(text.trim())} />;
  }
  if (schema.type !== "string") {
    const hint = hinted(t("config.as_in_file", { kind: schema.description ?? "" }));
    return <TextField {...line} hint={hint} value={value} onValue={onValue} />;
  }
  const text = {
    ...line,
    value: value === "" ? "" : String(JSON.parse(value)),
    onValue: (typed: string) => onValue(typed === "" ? "" : JSON.stringify(typed)),
  };
  if (!secret) return <TextField {...text} />;
  return (
    <div>
      <TextField {...text} type="password" autocomplete="new-password" />
      {isSet && !readOnly && (
        <button type="button" class="link-button" aria-pressed={isOut} onClick={() => onValue(isOut ? "" : null)}>
          {isOut ? t("config.goes", { key: label }) : t("config.take_out", { key: label })}
        </button>
      )}
    </div>
  );
}

type PartProps = Readonly<{
  label: string;
  hint: VNode;
  error: string | null;
  /** As TOML, as the server writes it; this field keeps what is typed. */
  value: string;
  onValue: (value: string) => void;
}>;

/** Between TOML and lines, which are not empty. */
type Lines = Readonly<{
  hint: TextKey;
  linesOf(toml: string): readonly string[];
  tomlOf(lines: readonly string[]): string;
}>;
const itemLines: Lines = {
  hint: "config.one_a_line",
  linesOf: (toml) => JSON.parse(toml) as string[],
  tomlOf: (lines) => JSON.stringify(lines),
};
const pairLines: Lines = {
  hint: "config.pair_a_line",
  linesOf: (toml) => membersOf(toml).map((pair) => pair.join(" = ")),
  tomlOf: (lines) =>
    memberLines.tomlOf(
      lines.map((line) => {
        const [key = "", ...rest] = line.split("=");
        return `${JSON.stringify(key.trim())} = ${JSON.stringify(rest.join("=").trim())}`;
      }),
    ),
};
/** Of a table whose values may be anything: each as the file has it. */
const memberLines: Lines = {
  hint: "config.member_a_line",
  linesOf(toml) {
    const lines = [""];
    let depth = 0;
    for (const [sign] of toml.slice(1, -1).matchAll(/"(?:[^"\\]|\\.)*"|[^"[\]{},]+|[^]/g)) {
      if (sign === "[" || sign === "{") depth += 1;
      if (sign === "]" || sign === "}") depth -= 1;
      if (sign === "," && depth === 0) lines.push("");
      else lines.push(lines.pop()! + sign);
    }
    return lines.map((line) => line.trim());
  },
  tomlOf: (lines) => `{ ${lines.join(", ")} }`,
};

function LinesField({ value, as, onValue, ...field }: PartProps & Readonly<{ as: Lines }>): VNode {
  const [text, setText] = useState(() => (value === "" ? "" : as.linesOf(value).join("\n")));
  const type = (next: string): void => {
    setText(next);
    const lines = next.split("\n").flatMap((line) => (line.trim() === "" ? [] : [line.trim()]));
    onValue(lines.length === 0 ? "" : as.tomlOf(lines));
  };
  return <LongField {...field} rows={Math.max(2, text.split("\n").length)} value={text} onValue={type} />;
}

/** A number for all parts, or a table of theirs. */
function PartsField({ label, hint, error, value, onValue, parts }: PartProps & { parts: readonly string[] }): VNode {
  const [typed, setTyped] = useState<Readonly<Record<string, string>>>(() =>
    value.startsWith("{") ? Object.fromEntries(membersOf(value)) : { [parts[0]!]: value, [parts.at(-1)!]: value },
  );
  const type = (part: string, text: string): void => {
    const next = { ...typed, [part]: text.trim() };
    setTyped(next);
    const given = parts.filter((each) => (next[each] ?? "") !== "");
    onValue(given.length === 0 ? "" : `{ ${given.map((each) => `${each} = ${next[each]}`).join(", ")} }`);
  };
  return (
    <Field label={label} hint={hint} error={error}>
      {(control) => (
        <div class="row" role="group" aria-label={label} aria-describedby={control["aria-describedby"]}>
          {parts.map((part, at) => (
            <input
              key={part}
              {...control}
              id={at === 0 ? control.id : undefined}
              aria-label={`${label}: ${part}`}
              placeholder={part}
              title={part}
              inputMode="decimal"
              class="grow"
              value={typed[part] ?? ""}
              onInput={(event) => type(part, event.currentTarget.value)}
            />
          ))}
        </div>
      )}
    </Field>
  );
}

/** Of a table in one line, as the server writes it. */
const membersOf = (table: string): [string, string][] =>
  [...table.matchAll(/("(?:[^"\\]|\\.)*"|[\w-]+) = ("(?:[^"\\]|\\.)*"|[\w.+-]+)/g)].map(([, key, value]) => [
    plainOf(key!),
    plainOf(value!),
  ]);
const plainOf = (text: string): string => (text.startsWith('"') ? String(JSON.parse(text)) : text);

const inCode = (text: string): VNode => (
  <>{text.split("`").map((part, at) => (at % 2 === 0 ? part : <code key={at}>{part}</code>))}</>
);
