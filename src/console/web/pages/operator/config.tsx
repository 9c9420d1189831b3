// The configuration file: nodes, models, presets, plans and what else of requests changes while the server runs. What would
// change is shown before it is applied, and what another operator did meanwhile before one's own goes on top of it.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { ConfigEdited, ConfigShown } from "../../../api/server.ts";
import type { Faults } from "../../../api/shapes.ts";
import { ago, utc } from "../../format.ts";
import { Button } from "../../parts/button.tsx";
import { Card } from "../../parts/card.tsx";
import { Choice } from "../../parts/choice.tsx";
import { type DataColumn, DataTable } from "../../parts/data-table.tsx";
import { FormError } from "../../parts/field.tsx";
import { Page } from "../../parts/page.tsx";
import { Empty, Loaded } from "../../parts/states.tsx";
import { toast } from "../../parts/toasts.tsx";
import { get, post, RequestError } from "../../request.ts";
import { useAction, useResource } from "../../resource.ts";
import { navigate, place } from "../../route.ts";
import { Fact } from "../../parts/fact.tsx";
import { rich, t } from "../../texts.ts";
import { RowForm, type Wish } from "./config-form.tsx";
import { ConflictDialog, ReviewDialog } from "./config-review.tsx";

const sections = () =>
  ({
    nodes: t("config.nodes"),
    models: t("config.models"),
    plans: t("config.plans"),
    others: t("config.others"),
  }) as const;
type Section = keyof ReturnType<typeof sections>;

const go = (query: Record<string, string>): void => navigate(`/operator/config?${new URLSearchParams(query)}`);

const read = (): Promise<ConfigShown> => get("/operator/config");

/** `edited`: what the wish would do. `now`: the file, which another changed since it was read here. */
type Step = Readonly<{ wish: Wish; edited: ConfigEdited }> | Readonly<{ wish: Wish; now: ConfigShown }>;

export function ConfigPage(): VNode {
  const config = useResource(read, "config");
  return (
    <Page title={t("config.title")} lead={t("config.lead")}>
      <Loaded resource={config} lines={10}>
        {(value) => <Config config={value} onRead={config.replace} />}
      </Loaded>
    </Page>
  );
}

type ConfigProps = Readonly<{ config: ConfigShown; onRead: (now: ConfigShown) => void }>;

/** What an operator does with the file: wishes, and what came of them. */
function useEditing({ config, onRead }: ConfigProps, table: string) {
  const [step, setStep] = useState<Step | null>(null);
  const [faults, setFaults] = useState<Faults>([]);
  /** Another one begins with what is in the file. */
  const [draft, setDraft] = useState(0);
  const action = useAction();

  /** What the server refuses is shown where it can be put right. */
  const orStop = (wish: Wish, act: () => Promise<void>): Promise<boolean> =>
    action.run(async () => {
      try {
        await act();
      } catch (error) {
        if (error instanceof RequestError && error.code === "conflict") return setStep({ wish, now: await read() });
        setStep(null);
        if (!(error instanceof RequestError)) throw error;
        setFaults(error.faults);
        if (!error.faults.some((fault) => wish.isAbout(fault))) throw error;
      }
    });
  const review = (wish: Wish, { hash }: ConfigShown = config): Promise<boolean> =>
    orStop(wish, async () => {
      setFaults([]);
      setStep({ wish, edited: await post("/operator/config", { ...wish.changes, hash, dry_run: true }) });
    });
  const apply = (wish: Wish): Promise<boolean> =>
    orStop(wish, async () => {
      const { applied } = await post("/operator/config", { ...wish.changes, hash: config.hash });
      toast(applied.length === 0 ? t("config.applied_nothing") : t("config.applied", { what: applied.join(", ") }));
      onRead(await read());
      setStep(null);
      go({ table });
    });
  const takeTheirs = (now: ConfigShown): void => {
    onRead(now);
    setStep(null);
    setDraft(draft + 1);
  };
  const putOnTop = (wish: Wish, now: ConfigShown): void => {
    onRead(now);
    void review(wish, now);
  };
  return { step, faults, draft, action, review, apply, takeTheirs, putOnTop, close: () => setStep(null) };
}

function Config({ config, onRead }: ConfigProps): VNode {
  const { query } = place.value;
  const table = query.get("table") ?? "nodes";
  const row = query.get("row");
  const editing = useEditing({ config, onRead }, table);
  const { step, faults, draft, action, close } = editing;
  return (
    <div class="stack-large">
      {config.problem !== null && (
        <p class="notice" role="status">
          <span class="break">{t("config.read_only", { problem: config.problem })}</span>
        </p>
      )}
      {config.gateway !== null && (
        <p class="quiet">
          {rich("config.of_gateway", { gateway: config.gateway, name: (inner) => <strong>{inner}</strong> })}
        </p>
      )}
      <div>
        <Choice
          name={t("config.part")}
          options={sections()}
          chosen={sectionOf(table)}
          onChoose={(next) => go({ table: next })}
        />
      </div>
      <Shown
        key={`${table} ${row} ${draft}`}
        {...{ config, table, row, faults, busy: action.busy }}
        onWish={(wish) => void editing.review(wish)}
      />
      <FormError message={step === null ? action.error : null} />
      <Changes config={config} onRead={onRead} />
      {step !== null && "edited" in step && (
        <ReviewDialog
          edited={step.edited}
          action={action}
          onApply={() => void editing.apply(step.wish)}
          onClose={close}
        />
      )}
      {step !== null && "now" in step && (
        <ConflictDialog
          wish={step.wish}
          seen={config}
          now={step.now}
          action={action}
          onTheirs={() => editing.takeTheirs(step.now)}
          onMine={() => editing.putOnTop(step.wish, step.now)}
          onClose={close}
        />
      )}
    </div>
  );
}

const sectionOf = (table: string): Section => (table in sections() ? (table as Section) : "others");

type ShownProps = Readonly<{
  config: ConfigShown;
  table: string;
  row: string | null;
  faults: Faults;
  busy: boolean;
  onWish: (wish: Wish) => void;
}>;

function Shown({ config, table, row, faults, busy, onWish }: ShownProps): VNode {
  const own = config.tables.find(({ name }) => name === table);
  const isThere = row === "" || own?.is_list === false || own?.rows.some(({ name }) => name === row) === true;
  const isFixed = config.problem !== null;
  if (own !== undefined && row !== null && isThere) {
    return <RowForm table={own} {...{ row, isFixed, faults, busy, onWish }} onBack={() => go({ table })} />;
  }
  const section = sectionOf(table);
  const title = sections()[section];
  const tables = config.tables.filter(({ name, is_list }) => (section === "others" ? !is_list : name === section));
  const rows = tables.flatMap((each) => each.rows.map((one) => ({ table: each, ...one })));
  return (
    <Card
      title={title}
      side={
        section !== "others" && (
          <Button
            caption={t("config.add")}
            class="button small"
            disabled={isFixed}
            onClick={() => go({ table, row: "" })}
          />
        )
      }
    >
      {rows.length === 0 ? (
        <Empty icon="settings" title={t("config.none")} />
      ) : (
        <DataTable
          caption={title}
          columns={columnsOf(isFixed, busy, onWish)}
          rows={rows}
          rowKey={({ table, name }) => table.name + name}
          first=""
        />
      )}
    </Card>
  );
}

type Line = Readonly<{ table: ConfigShown["tables"][number] }> & ConfigShown["tables"][number]["rows"][number];

const columnsOf = (isFixed: boolean, busy: boolean, onWish: ShownProps["onWish"]): readonly DataColumn<Line>[] => [
  {
    ...{ id: "name", name: "config.name", look: "nowrap" },
    sort: ({ name }) => name,
    cell: ({ table: { name: of, is_list: isList }, name }) => (isList ? name : of),
  },
  {
    ...{ id: "in_file", name: "config.in_file", look: "quiet break small-text sentence" },
    cell: ({ table, values }) => {
      const given = Object.entries(values).filter(([key]) => key !== table.row_key);
      if (given.length === 0) return t("config.as_it_comes");
      return (
        <dl class="facts start">
          {given.map(([key, value]) => (
            <Fact key={key} name={key} value={<code>{value}</code>} />
          ))}
        </dl>
      );
    },
  },
  {
    ...{ id: "actions", name: "common.actions", isActions: true },
    cell: ({ table: { name: of, is_list: isList }, name }) => (
      <>
        <Button
          caption={isFixed ? t("config.show") : t("config.edit")}
          class="button small"
          aria-label={t("config.edit_row", { row: `${of} ${name}` })}
          onClick={() => go({ table: of, row: isList ? name : of })}
        />{" "}
        {isList && (
          <Button
            caption={t("config.remove")}
            class="button small danger-quiet"
            aria-label={t("config.remove_row", { row: `${of} ${name}` })}
            disabled={isFixed || busy}
            onClick={() =>
              onWish({ changes: { remove: [`${of}.${JSON.stringify(name)}`] }, own: null, isAbout: () => false })
            }
          />
        )}
      </>
    ),
  },
];

function Changes({ config, onRead }: ConfigProps): VNode | null {
  const action = useAction();
  const undo = async (): Promise<void> => {
    try {
      const { what } = await post("/operator/config/undo", { hash: config.hash });
      toast(t("config.undone", { what: what.map((each) => each.replace("undone: ", "")).join("; ") }));
    } finally {
      onRead(await read());
    }
  };
  if (config.changes.length === 0) return null;
  return (
    <Card title={t("config.changed_here")} class="card stack">
      <FormError message={action.error} />
      {config.changes.map(({ at, by, what }, index) => (
        <div key={at} class="row spread">
          <span class="break small-text">
            <strong>{by}</strong> <span title={utc(at)}>{ago(at)}</span>: {what.join("; ")}
          </span>
          {index === 0 && config.can_undo && (
            <Button
              caption={t("config.undo")}
              class="button small"
              busy={action.busy}
              aria-label={t("config.undo_last")}
              onClick={() => void action.run(undo)}
            />
          )}
        </div>
      ))}
    </Card>
  );
}
