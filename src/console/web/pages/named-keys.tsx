// The account's named keys: their limits and use, and the actions that make, rename, limit and revoke them.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { countNames } from "../../../core/count-limits.ts";
import type { AccountKey, CreatedAccountKey } from "../../api/keys.ts";
import { count, date, list } from "../format.ts";
import { Confirm } from "../parts/asking-dialogs.tsx";
import { NameDialog } from "../parts/name-dialog.tsx";
import { FreshKey } from "../parts/secret.tsx";
import { Empty, Loaded } from "../parts/states.tsx";
import { toast } from "../parts/toasts.tsx";
import { get, post } from "../request.ts";
import { sells } from "../session.ts";
import { useResource } from "../resource.ts";
import { useWish } from "../wish.ts";
import { LimitsDialog, NewKeyDialog } from "./key-form.tsx";
import { Time } from "../parts/time.tsx";
import { Button } from "../parts/button.tsx";
import { Card } from "../parts/card.tsx";
import { buttonColumn, figures, Table } from "../parts/table.tsx";
import { rich, t } from "../texts.ts";
import { strong } from "../parts/inline.tsx";

/** The key that is regenerated instead of revoked; it has a card of its own. */
const defaultKeyId = 1;

type Asking = Readonly<{ what: "limits" | "rename" | "revoke"; key: AccountKey }>;

/** `onMade` gets a new key, which is shown only once, or null when that key was revoked. */
export function NamedKeys({ onMade }: { onMade: (apiKey: string | null) => void }): VNode {
  const keys = useResource(() => get("/keys"), "keys");
  const [making, setMaking] = useState(false);
  const [made, setMade] = useState<CreatedAccountKey | null>(null);
  const [asking, setAsking] = useState<Asking | null>(null);
  const close = (): void => setAsking(null);
  useWish({ new: () => setMaking(true) });
  const changed = (): void => {
    close();
    keys.reload();
  };
  return (
    <Card
      title={t("keys.named")}
      aria-label={t("keys.named")}
      side={<Button caption={t("keys.new")} class="button small" onClick={() => setMaking(true)} />}
    >
      {made !== null && (
        <FreshKey
          title={t("keys.made", { name: made.name })}
          apiKey={made.api_key}
          label={t("keys.copy", { name: made.name })}
        />
      )}
      <Loaded resource={keys} lines={3}>
        {({ keys }) => <KeyTable keys={keys.filter(({ id }) => id !== defaultKeyId)} onAsk={setAsking} />}
      </Loaded>
      {making && (
        <NewKeyDialog
          onClose={() => setMaking(false)}
          onMade={(key) => {
            setMaking(false);
            setMade(key);
            onMade(key.api_key);
            keys.reload();
          }}
        />
      )}
      {asking?.what === "limits" && <LimitsDialog shown={asking.key} onClose={close} onDone={changed} />}
      {asking?.what === "rename" && <RenameDialog shown={asking.key} onClose={close} onDone={changed} />}
      {asking?.what === "revoke" && (
        <RevokeDialog
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

const actions = ["limits", "rename", "revoke"] as const;

type KeyTableProps = Readonly<{ keys: readonly AccountKey[]; onAsk: (asking: Asking) => void }>;

function KeyTable({ keys, onAsk }: KeyTableProps): VNode {
  if (keys.length === 0) {
    return (
      <Empty icon="key" title={t("keys.no_named")}>
        {t(sells.value ? "keys.no_named_about_sells" : "keys.no_named_about")}
      </Empty>
    );
  }
  /** Some servers bill no balance tokens. */
  const isLimited = sells.value || keys.some((key) => key.limit_day !== null || key.limit_month !== null);
  return (
    <Table
      caption={t("keys.named")}
      columns={[
        t("common.name"),
        t("keys.last_used"),
        t("keys.may"),
        ...figures(...(isLimited ? [t("common.today"), t("common.this_month")] : [])),
        buttonColumn(),
      ]}
    >
      {keys.map((key) => (
        <KeyRow key={key.id} shown={key} isLimited={isLimited} onAsk={onAsk} />
      ))}
    </Table>
  );
}

type KeyRowProps = Readonly<{ shown: AccountKey; isLimited: boolean; onAsk: (asking: Asking) => void }>;

const KeyRow = ({ shown: key, isLimited, onAsk }: KeyRowProps): VNode => (
  <tr>
    <td class="break">
      {key.name} {key.ending !== null && <code class="quiet">…{key.ending}</code>}{" "}
      {key.machine && <span class="badge">{t("keys.machine")}</span>}{" "}
      {key.expired && <span class="badge bad">{t("keys.expired")}</span>}
    </td>
    <td class="nowrap quiet">{key.last_used_at === null ? t("keys.never_used") : <Time at={key.last_used_at} />}</td>
    <td class="break sentence quiet small-text">{limitsOf(key)}</td>
    {isLimited && (
      <>
        <td class="number nowrap" data-name={t("common.today")}>
          {used(key.used_day, key.limit_day)}
        </td>
        <td class="number nowrap" data-name={t("common.this_month")}>
          {used(key.used_month, key.limit_month)}
        </td>
      </>
    )}
    <td class="nowrap sentence">
      {actions.map((what) => (
        <>
          <Button
            caption={t(`keys.${what}`)}
            class="button small"
            aria-label={t(`keys.${what}_of`, { name: key.name })}
            onClick={() => onAsk({ what, key })}
          />{" "}
        </>
      ))}
    </td>
  </tr>
);

const used = (tokens: number | null, limit: number | null): string =>
  limit === null ? count(tokens ?? 0) : t("keys.used_of", { used: tokens ?? 0, limit });

function limitsOf({ models, addresses, expires_at, expired, ...key }: AccountKey): string {
  const parts = [
    models === null ? t("keys.all_models") : list(models),
    ...(addresses === null ? [] : [t("keys.from", { addresses: list(addresses) })]),
    ...(expires_at === null || expired ? [] : [t("keys.until", { day: date(Date.parse(expires_at) - 1) })]),
    ...(key.forwards_users ? [t("keys.names_users")] : []),
    ...(key.limit_end_user_day === null ? [] : [t("keys.day_for_each", { tokens: key.limit_end_user_day })]),
    ...(key.priority === null ? [] : [t(`class.${key.priority}`)]),
    ...countNames.flatMap(([name]) => (key[name] === null ? [] : [t(`limit_words.${name}`, { amount: key[name] })])),
  ];
  return parts.join("; ");
}

type KeyDialogProps = Readonly<{ shown: AccountKey; onClose: () => void; onDone: () => void }>;

const RenameDialog = ({ shown, onClose, onDone }: KeyDialogProps): VNode => (
  <NameDialog
    title={t("keys.rename_title")}
    hint={t("keys.rename_hint")}
    name={shown.name}
    maxLength={64}
    caption={t("keys.rename")}
    onName={async (name) => {
      await post(`/keys/${shown.id}/name`, { name });
      onDone();
    }}
    onClose={onClose}
  />
);

const RevokeDialog = ({ shown, onClose, onDone }: KeyDialogProps): VNode => (
  <Confirm
    title={t("keys.revoke_ask")}
    confirm={t("keys.revoke_do")}
    onConfirm={async () => {
      await post(`/keys/${shown.id}/revoke`);
      toast(t("keys.revoked", { name: shown.name }));
      onDone();
    }}
    onClose={onClose}
  >
    <p>{rich("keys.revoke_about", { name: <strong>{shown.name}</strong>, strong })}</p>
  </Confirm>
);
