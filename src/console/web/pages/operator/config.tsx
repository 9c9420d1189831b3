// The configuration file: nodes, models, presets, plans and what else of requests changes while the server runs. The forms
// are made from the schema that the file is checked with. What would change is shown before it is applied.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { ConfigEdit, ConfigEdited, ConfigShown, ConfigTable } from "../../../api/server.ts";
import { ago, utc } from "../../format.ts";
import { Button } from "../../parts/button.tsx";
import { Card } from "../../parts/card.tsx";
import { Choice } from "../../parts/choice.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Field, FormError, LongField, TextField } from "../../parts/field.tsx";
import { Page } from "../../parts/page.tsx";
import { Select } from "../../parts/select.tsx";
import { Empty, Loaded } from "../../parts/states.tsx";
import { buttonColumn, Table } from "../../parts/table.tsx";
import { toast } from "../../parts/toasts.tsx";
import { get, post } from "../../request.ts";
import { useAction, useResource } from "../../resource.ts";
import { navigate, place } from "../../route.ts";

type ConfigKey = ConfigTable["keys"][number];
type Schema = Readonly<{
  type?: string;
  const?: unknown;
  anyOf?: readonly Schema[];
  items?: Schema;
  description?: string;
}>;
type Wanted = Pick<ConfigEdit, "set" | "add" | "remove">;

const sections = { nodes: "Nodes", models: "Models and presets", plans: "Plans", others: "Others" } as const;
type Section = keyof typeof sections;

const go = (query: Record<string, string>): void => navigate(`/operator/config?${new URLSearchParams(query)}`);

export function ConfigPage(): VNode {
  const config = useResource(() => get("/operator/config"), "config");
  const { query } = place.value;
  const table = query.get("table") ?? "nodes";
  const section: Section = table in sections ? (table as Section) : "others";
  const row = query.get("row");
  const [wanted, setWanted] = useState<Wanted | null>(null);
  return (
    <Page title="Configuration" lead="The file of the server. Changes apply at once, without a restart.">
      <Loaded resource={config} lines={10}>
        {(value) => (
          <div class="stack-large">
            {value.problem !== null && (
              <p class="notice" role="status">
                <span class="break">It can only be read here: {value.problem}.</span>
              </p>
            )}
            {value.gateway !== null && (
              <p class="quiet">
                This is the file of the gateway <strong>{value.gateway}</strong>. Each of the others has its own.
              </p>
            )}
            <div>
              <Choice name="Part" options={sections} chosen={section} onChoose={(next) => go({ table: next })} />
            </div>
            <Shown key={table + row} {...{ config: value, section, table, row }} onWish={setWanted} />
            <Changes config={value} onUndone={config.replace} />
            {wanted !== null && (
              <Review
                wanted={wanted}
                hash={value.hash}
                onClose={() => setWanted(null)}
                onOther={config.reload}
                onApplied={async () => {
                  config.replace(await get("/operator/config"));
                  setWanted(null);
                  go({ table });
                }}
              />
            )}
          </div>
        )}
      </Loaded>
    </Page>
  );
}

type ShownProps = Readonly<{
  config: ConfigShown;
  section: Section;
  table: string;
  row: string | null;
  onWish: (wanted: Wanted) => void;
}>;

function Shown({ config, section, table, row, onWish }: ShownProps): VNode {
  const own = config.tables.find(({ name }) => name === table);
  const isThere = row === "" || own?.is_list === false || own?.rows.some(({ name }) => name === row) === true;
  if (own !== undefined && row !== null && isThere) {
    return <RowForm table={own} row={row} isFixed={config.problem !== null} onWish={onWish} />;
  }
  const tables = config.tables.filter(({ name, is_list }) => (section === "others" ? !is_list : name === section));
  const rows = tables.flatMap((each) => each.rows.map((one) => ({ table: each, ...one })));
  const isFixed = config.problem !== null;
  return (
    <Card
      title={sections[section]}
      side={
        section !== "others" && (
          <Button caption="Add" class="button small" disabled={isFixed} onClick={() => go({ table, row: "" })} />
        )
      }
    >
      {rows.length === 0 ? (
        <Empty icon="settings" title="The file has none" />
      ) : (
        <Table caption={sections[section]} columns={["Name", "In the file", buttonColumn()]}>
          {rows.map(({ table: { name: of, row_key: rowKey, is_list: isList }, name, values }) => (
            <tr key={of + name}>
              <td class="break">{isList ? name : of}</td>
              <td class="quiet break small-text">
                {Object.entries(values)
                  .filter(([key]) => key !== rowKey)
                  .map(([key, value]) => `${key}${value === "" ? "" : ` = ${value}`}`)
                  .join(", ") || "as it comes"}
              </td>
              <td class="right nowrap">
                <Button
                  caption={isFixed ? "Show" : "Edit"}
                  class="button small"
                  aria-label={`Edit ${of} ${name}`}
                  onClick={() => go({ table: of, row: isList ? name : of })}
                />{" "}
                {isList && (
                  <Button
                    caption="Remove"
                    class="button small danger-quiet"
                    aria-label={`Remove ${of} ${name}`}
                    disabled={isFixed}
                    onClick={() => onWish({ remove: [`${of}.${JSON.stringify(name)}`] })}
                  />
                )}
              </td>
            </tr>
          ))}
        </Table>
      )}
    </Card>
  );
}

type RowFormProps = Readonly<{
  table: ConfigTable;
  row: string;
  isFixed: boolean;
  onWish: (wanted: Wanted) => void;
}>;

/** `row` empty: a new one. */
function RowForm({ table, row, isFixed, onWish }: RowFormProps): VNode {
  const { name, row_key: rowKey, is_list: isList, rows } = table;
  const values = (isList ? rows.find((each) => each.name === row) : rows[0])?.values ?? {};
  const keys = table.keys.filter(({ name: key, fixed }) => fixed === null || key in values);
  const [typed, setTyped] = useState<Readonly<Record<string, string | null>>>({});
  const isFirst = ({ name: key, required }: ConfigKey): boolean => required || key in values || key === "url";
  const changed = Object.entries(typed).filter(([key, value]) => value !== (values[key] ?? ""));
  const fields = (some: readonly ConfigKey[]): VNode => (
    <div class="grid-2">
      {some.map((key) => (
        <KeyField
          key={key.name}
          of={key}
          isSet={key.name in values}
          isFixed={isFixed}
          typed={typed[key.name]}
          written={values[key.name] ?? ""}
          onValue={(value) => setTyped({ ...typed, [key.name]: value })}
        />
      ))}
    </div>
  );
  const review = (): void => {
    const isNew = isList && row === "";
    const own = isNew ? (JSON.parse(typed[rowKey ?? ""] || '""') as string) : row;
    const path = isList ? `${name}.${JSON.stringify(own)}` : name;
    const set = changed
      .filter(([key]) => !isNew || key !== rowKey)
      .map(([key, value]) => `${path}.${key}=${value ?? ""}`);
    onWish({ ...(isNew ? { add: [path] } : {}), ...(set.length === 0 ? {} : { set }) });
  };
  return (
    <form
      class="card stack-large"
      aria-label={`${name} ${row}`}
      onSubmit={(event) => {
        event.preventDefault();
        review();
      }}
    >
      <h2>{row === "" ? `New row of ${name}` : isList ? `${name}: ${row}` : name}</h2>
      {fields(keys.filter(isFirst))}
      {keys.some((key) => !isFirst(key)) && (
        <details>
          <summary>More settings</summary>
          {fields(keys.filter((key) => !isFirst(key)))}
        </details>
      )}
      <footer class="row">
        <Button caption="Back" onClick={() => go({ table: name })} />
        <Button caption="Review the change" type="submit" class="button primary" disabled={changed.length === 0} />
      </footer>
    </form>
  );
}

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
  /** As TOML; empty: none; null: what is in the file goes. */
  typed: string | null | undefined;
  /** As TOML; empty: it is not in the file, or a secret. */
  written: string;
  onValue: (value: string | null) => void;
}>;

function KeyField({ of, isSet, isFixed, typed, written, onValue }: KeyFieldProps): VNode {
  const isOut = typed === null;
  const value = isOut ? "" : (typed ?? written);
  const { name: label, about, otherwise, required, secret, fixed } = of;
  const schema = of.schema as Schema;
  const without = required || otherwise === "" ? "" : ` Without it: ${otherwise}.`;
  const said = secret && isSet ? "It is set, and not shown. " : "";
  const hint = inCode(`${said}${about}${without}${fixed === null ? "" : ` Here it cannot be changed: ${fixed}.`}`);
  const readOnly = isFixed || fixed !== null;
  const plain = { label, hint, spellcheck: false, autocapitalize: "off" } as const;
  const line = { ...plain, readOnly, required: required && !secret };
  const choices = choicesOf(schema);
  if (choices !== null && !readOnly) {
    return (
      <Field label={label} hint={hint}>
        {(control) => <Select {...control} value={value} options={choices} all="not said" onValue={onValue} />}
      </Field>
    );
  }
  if (schema.type === "array" && schema.items?.type === "string" && !readOnly) {
    const lines = value === "" ? [] : (JSON.parse(value) as string[]);
    return (
      <LongField
        {...plain}
        hint={<>{hint} One a line.</>}
        rows={Math.max(2, lines.length)}
        value={lines.join("\n")}
        onValue={(text) => onValue(text === "" ? "" : JSON.stringify(text.split("\n")))}
      />
    );
  }
  if (schema.type !== "string") {
    return (
      <TextField
        {...line}
        hint={
          <>
            {hint} As in the file: {schema.description}.
          </>
        }
        value={value}
        onValue={onValue}
      />
    );
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
          {isOut ? `${label} goes; keep it` : `Take ${label} out`}
        </button>
      )}
    </div>
  );
}

const inCode = (text: string): VNode => (
  <>{text.split("`").map((part, at) => (at % 2 === 0 ? part : <code key={at}>{part}</code>))}</>
);

type ReviewProps = Readonly<{
  wanted: Wanted;
  hash: string;
  onClose: () => void;
  /** The file is another one by now. */
  onOther: () => void;
  onApplied: () => Promise<void>;
}>;

function Review({ wanted, hash, onClose, onOther, onApplied }: ReviewProps): VNode {
  const asked = { ...wanted, hash };
  const rehearsal = useResource(() => post("/operator/config", { ...asked, dry_run: true }), JSON.stringify(asked));
  const action = useAction();
  const apply = async (): Promise<void> => {
    const { applied } = await post("/operator/config", asked);
    toast(`Applied: ${applied.join(", ") || "nothing that a running server uses"}`);
    await onApplied();
  };
  return (
    <Dialog title="What would change" onClose={onClose}>
      {rehearsal.error === null ? (
        <Loaded resource={rehearsal}>{(value) => <Outcome of={value} />}</Loaded>
      ) : (
        <pre class="message" role="alert">
          {rehearsal.error}
        </pre>
      )}
      <FormError message={action.error} />
      <footer>
        <Button caption="Cancel" onClick={onClose} />
        {rehearsal.error === null && action.error === null ? (
          <Button
            caption="Apply"
            class="button primary"
            busy={action.busy}
            disabled={rehearsal.value === null || rehearsal.value.what.length === 0}
            onClick={() => void action.run(apply)}
          />
        ) : (
          <Button caption="Read the file again" onClick={onOther} />
        )}
      </footer>
    </Dialog>
  );
}

const Outcome = ({ of }: { of: ConfigEdited }): VNode => (
  <div class="stack">
    <pre class="message diff" tabIndex={0} aria-label="Changed lines of the file">
      {of.diff.map(({ sign, text }, at) => {
        const line = sign === null ? "…\n" : `${sign} ${text}\n`;
        return sign === "+" ? <ins key={at}>{line}</ins> : sign === "-" ? <del key={at}>{line}</del> : line;
      })}
    </pre>
    {of.diff.length === 0 && of.what.map((each) => <p key={each}>{each}</p>)}
    {of.what.length === 0 && <p>Nothing would be another.</p>}
    {of.warnings.map((line) => (
      <p key={line} class="notice">
        <span class="break">{line}</span>
      </p>
    ))}
    {of.needs_restart.length > 0 && <p>In force only after a restart: {of.needs_restart.join(", ")}.</p>}
  </div>
);

function Changes({
  config,
  onUndone,
}: Readonly<{ config: ConfigShown; onUndone: (now: ConfigShown) => void }>): VNode | null {
  const action = useAction();
  const undo = async (): Promise<void> => {
    const { what } = await post("/operator/config/undo", { hash: config.hash });
    toast(`Undone: ${what.map((each) => each.replace("undone: ", "")).join("; ")}`);
    onUndone(await get("/operator/config"));
  };
  if (config.changes.length === 0) return null;
  return (
    <Card title="Changed here" class="card stack">
      <FormError message={action.error} />
      {config.changes.map(({ at, by, what }, index) => (
        <div key={at} class="row spread">
          <span class="break small-text">
            <strong>{by}</strong> <span title={utc(at)}>{ago(at)}</span>: {what.join("; ")}
          </span>
          {index === 0 && config.can_undo && (
            <Button
              caption="Undo"
              class="button small"
              busy={action.busy}
              aria-label="Undo the last change"
              onClick={() => void action.run(undo)}
            />
          )}
        </div>
      ))}
    </Card>
  );
}
