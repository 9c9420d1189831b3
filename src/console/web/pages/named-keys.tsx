// The account's named keys: their limits and use, and the actions that make, rename, limit and revoke them.
import type { ComponentChildren, VNode } from "preact";
import { useState } from "preact/hooks";
import { countNames } from "../../../core/count-limits.ts";
import type { AccountKey, CreatedAccountKey } from "../../api/keys.ts";
import { count, date, list } from "../format.ts";
import { AskButton, Confirm } from "../parts/asking-dialogs.tsx";
import { NameDialog } from "../parts/name-dialog.tsx";
import { FreshKey } from "../parts/secret.tsx";
import { Empty, Loaded } from "../parts/states.tsx";
import { toast } from "../parts/toasts.tsx";
import { post } from "../request.ts";
import { sells } from "../session.ts";
import { useResource } from "../resource.ts";
import { rich, t, type TextKey } from "../texts.ts";
import { useWish } from "../wish.ts";
import { type KeyActs, keyActs } from "./key-acts.ts";
import { LimitsDialog, NewKeyDialog } from "./key-form.tsx";
import { Time } from "../parts/time.tsx";
import { Button } from "../parts/button.tsx";
import { Card } from "../parts/card.tsx";
import { type DataColumn, DataTable, figureColumn } from "../parts/data-table.tsx";
import { strong } from "../parts/inline.tsx";

/** The key that is regenerated instead of revoked; it has a card of its own. */
const defaultKeyId = 1;

type Asking = Readonly<{ what: "limits" | "rename" | "revoke" | "cost_center"; key: AccountKey }>;

type NamedKeysProps = Readonly<{
  /** The account that an operator looks at: all its keys are shown. */
  of?: number;
  /** Gets a new key, which is shown only once, or null when that key was revoked. */
  onMade?: (apiKey: string | null) => void;
}>;

export function NamedKeys({ of, onMade = () => {} }: NamedKeysProps): VNode {
  const acts = keyActs(of ?? null);
  const keys = useResource(() => acts.list(), `keys ${of}`);
  const [making, setMaking] = useState(false);
  const [made, setMade] = useState<Pick<CreatedAccountKey, "id" | "name" | "api_key"> | null>(null);
  const [asking, setAsking] = useState<Asking | null>(null);
  const close = (): void => setAsking(null);
  useWish({ new: () => setMaking(true) });
  const rotated = (api_key: string): void => {
    setMade({ id: defaultKeyId, name: "default", api_key });
    keys.reload();
  };
  const changed = (): void => {
    close();
    keys.reload();
  };
  return (
    <Card
      title={t(of === undefined ? "keys.named" : "sheet.keys")}
      aria-label={t(of === undefined ? "keys.named" : "sheet.keys")}
      side={<Button caption={t("keys.new")} class="button small" onClick={() => setMaking(true)} />}
    >
      {made !== null && <MadeKey name={made.name} apiKey={made.api_key} />}
      <Loaded resource={keys} lines={3}>
        {({ keys: all }) => (
          <KeyTable
            keys={of === undefined ? all.filter(({ id }) => id !== defaultKeyId) : all}
            isOfOperator={of !== undefined}
            onAsk={setAsking}
            rotate={of !== undefined && <RotateButton of={of} onRotated={rotated} />}
          />
        )}
      </Loaded>
      {making && (
        <NewKeyDialog
          acts={acts}
          onClose={() => setMaking(false)}
          onMade={(key) => {
            setMaking(false);
            setMade(key);
            onMade(key.api_key);
            keys.reload();
          }}
        />
      )}
      {asking?.what === "limits" && <LimitsDialog acts={acts} shown={asking.key} onClose={close} onDone={changed} />}
      {asking?.what === "rename" && <RenameDialog acts={acts} shown={asking.key} onClose={close} onDone={changed} />}
      {asking?.what === "cost_center" && of !== undefined && (
        <CostCenterDialog of={of} shown={asking.key} onClose={close} onDone={changed} />
      )}
      {asking?.what === "revoke" && (
        <RevokeDialog
          acts={acts}
          shown={asking.key}
          onClose={close}
          onDone={() => {
            if (made?.id === asking.key.id) {
              setMade(null);
              onMade(null);
            }
            changed();
          }}
        />
      )}
    </Card>
  );
}

const MadeKey = ({ name, apiKey }: { name: string; apiKey: string }): VNode => (
  <FreshKey title={t("keys.made", { name })} apiKey={apiKey} label={t("keys.copy", { name })} />
);

const actions = ["limits", "rename", "revoke"] as const;

function RotateButton({ of, onRotated }: { of: number; onRotated: (apiKey: string) => void }): VNode {
  return (
    <AskButton
      caption={t("sheet.rotate")}
      class="button small"
      title={t("sheet.rotate_ask")}
      confirm={t("sheet.rotate")}
      onConfirm={async () => onRotated((await post(`/operator/accounts/${of}/keys/rotate`)).api_key)}
    >
      <p>{t("sheet.rotate_about")}</p>
    </AskButton>
  );
}

type CostCenterProps = Readonly<{ of: number; shown: AccountKey; onClose: () => void; onDone: () => void }>;

const CostCenterDialog = ({ of, shown: { id, name, cost_center }, onClose, onDone }: CostCenterProps): VNode => (
  <NameDialog
    title={t("sheet.cost_center_of", { name })}
    label={t("sheet.cost_center")}
    hint={t("sheet.cost_center_key_hint")}
    name={cost_center ?? ""}
    maxLength={100}
    isOptional
    caption={t("sheet.save")}
    onName={async (given) => {
      await post(`/operator/accounts/${of}/cost-center`, { cost_center: given || null, key: id });
      onDone();
    }}
    onClose={onClose}
  />
);

type KeyTableProps = Readonly<{
  keys: readonly AccountKey[];
  isOfOperator: boolean;
  onAsk: (asking: Asking) => void;
  /** The button of the first key. */
  rotate: ComponentChildren;
}>;

function KeyTable({ keys, isOfOperator, onAsk, rotate }: KeyTableProps): VNode {
  if (keys.length === 0) {
    return (
      <Empty icon="key" title={t("keys.no_named")}>
        {t(sells.value ? "keys.no_named_about_sells" : "keys.no_named_about")}
      </Empty>
    );
  }
  /** Some servers bill no balance tokens. */
  const isLimited = sells.value || keys.some((key) => key.limit_day !== null || key.limit_month !== null);
  const acts = isOfOperator ? ([...actions, "cost_center"] as const) : actions;
  const columns: readonly DataColumn<AccountKey>[] = [
    ...keyColumns,
    { id: "may", name: "keys.may", look: "break sentence quiet small-text", cell: limitsOf },
    ...(isLimited ? usedColumns : []),
    {
      ...{ id: "actions", name: "common.actions", isActions: true },
      cell: (key) =>
        key.id === defaultKeyId
          ? rotate
          : acts.map((what) => (
              <>
                <Button
                  caption={t(`keys.${what}`)}
                  class="button small"
                  aria-label={t(`keys.${what}_of`, { name: key.name })}
                  onClick={() => onAsk({ what, key })}
                />{" "}
              </>
            )),
    },
  ];
  return (
    <DataTable
      name="keys"
      caption={t("keys.named")}
      columns={columns}
      rows={keys}
      rowKey={({ id }) => id}
      first=""
      prefix="key-"
    />
  );
}

export const keyColumns: readonly DataColumn<AccountKey>[] = [
  {
    ...{ id: "name", name: "common.name", look: "break" },
    sort: ({ name }) => name,
    cell: (key) => (
      <>
        {key.name} {key.ending !== null && <code class="quiet nowrap">…{key.ending}</code>}{" "}
        {key.machine && <span class="badge">{t("keys.machine")}</span>}{" "}
        {key.expired && <span class="badge bad">{t("keys.expired")}</span>}
        {key.member !== null && <div class="quiet small-text">{key.member}</div>}
      </>
    ),
  },
  {
    ...{ id: "used", name: "keys.last_used", look: "nowrap quiet" },
    sort: ({ last_used_at: at }) => at,
    cell: ({ last_used_at: at, last_address: address }) => (
      <>
        {at === null ? t("keys.never_used") : <Time at={at} />}
        {address != null && <div class="small-text">{address}</div>}
      </>
    ),
  },
];

type Used = Readonly<Record<`${"used" | "limit"}_${"day" | "month"}`, number | null>>;

const usedColumn = (id: string, name: TextKey, period: "day" | "month"): DataColumn<Used> =>
  figureColumn(id, name, (row) => row[`used_${period}`], count, {
    look: "nowrap",
    cell: (row) => {
      const [used, limit] = [row[`used_${period}`], row[`limit_${period}`]];
      return used === null ? "–" : limit === null ? count(used) : t("keys.used_of", { used, limit });
    },
  });

export const usedColumns = [
  usedColumn("today", "common.today", "day"),
  usedColumn("month", "common.this_month", "month"),
];

function limitsOf({ models, addresses, expires_at, expired, ...key }: AccountKey): string {
  const parts = [
    models === null ? t("keys.all_models") : list(models),
    ...(addresses === null ? [] : [t("keys.from", { addresses: list(addresses) })]),
    ...(expires_at === null || expired ? [] : [t("keys.until", { day: date(Date.parse(expires_at) - 1) })]),
    ...(key.forwards_users ? [t("keys.names_users")] : []),
    ...(key.limit_end_user_day === null ? [] : [t("keys.day_for_each", { tokens: key.limit_end_user_day })]),
    ...(key.priority === null ? [] : [t(`class.${key.priority}`)]),
    ...countNames.flatMap(([name]) => (key[name] === null ? [] : [t(`limit_words.${name}`, { amount: key[name] })])),
    ...(key.cost_center === null ? [] : [key.cost_center]),
  ];
  return parts.join("; ");
}

type KeyDialogProps = Readonly<{ acts: KeyActs; shown: AccountKey; onClose: () => void; onDone: () => void }>;

const RenameDialog = ({ acts, shown, onClose, onDone }: KeyDialogProps): VNode => (
  <NameDialog
    title={t("keys.rename_title")}
    hint={t("keys.rename_hint")}
    name={shown.name}
    maxLength={64}
    caption={t("keys.rename")}
    onName={async (name) => {
      await acts.rename(shown.id, name);
      onDone();
    }}
    onClose={onClose}
  />
);

const RevokeDialog = ({ acts, shown, onClose, onDone }: KeyDialogProps): VNode => (
  <Confirm
    title={t("keys.revoke_ask")}
    confirm={t("keys.revoke_do")}
    onConfirm={async () => {
      await acts.revoke(shown.id);
      toast(t("keys.revoked", { name: shown.name }));
      onDone();
    }}
    onClose={onClose}
  >
    <p>{rich("keys.revoke_about", { name: <strong>{shown.name}</strong>, strong })}</p>
  </Confirm>
);
