// The account's named keys: their limits and use, and the actions that make, rename, limit and revoke them.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { countsInWords } from "../../../core/count-limits.ts";
import type { AccountKey, CreatedAccountKey } from "../../api/keys.ts";
import { count, date } from "../format.ts";
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
      title="Named keys"
      aria-label="Named keys"
      side={<Button caption="New key" class="button small" onClick={() => setMaking(true)} />}
    >
      {made !== null && (
        <FreshKey title={`The key “${made.name}”.`} apiKey={made.api_key} label={`Copy the key ${made.name}`} />
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

const actions = [
  ["limits", "Limits"],
  ["rename", "Rename"],
  ["revoke", "Revoke"],
] as const;

type KeyTableProps = Readonly<{ keys: readonly AccountKey[]; onAsk: (asking: Asking) => void }>;

function KeyTable({ keys, onAsk }: KeyTableProps): VNode {
  if (keys.length === 0) {
    return (
      <Empty icon="key" title="No named keys yet">
        Give each program or person a key with limits of its own{sells.value && "; all spend the same balance"}.
      </Empty>
    );
  }
  /** Some servers bill no balance tokens. */
  const isLimited = sells.value || keys.some((key) => key.limit_day !== null || key.limit_month !== null);
  return (
    <Table
      caption="Named keys"
      columns={["Name", "Last used", "May", ...figures(...(isLimited ? ["Today", "This month"] : [])), buttonColumn()]}
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
      {key.machine && <span class="badge">machine</span>} {key.expired && <span class="badge bad">Expired</span>}
    </td>
    <td class="nowrap quiet">{key.last_used_at === null ? "never used" : <Time at={key.last_used_at} />}</td>
    <td class="break sentence quiet small-text">{limitsOf(key)}</td>
    {isLimited && (
      <>
        <td class="number nowrap" data-name="Today">
          {used(key.used_day, key.limit_day)}
        </td>
        <td class="number nowrap" data-name="Month">
          {used(key.used_month, key.limit_month)}
        </td>
      </>
    )}
    <td class="nowrap sentence">
      {actions.map(([what, caption]) => (
        <>
          <Button
            caption={caption}
            class="button small"
            aria-label={`${caption} ${what === "limits" ? "of " : ""}${key.name}`}
            onClick={() => onAsk({ what, key })}
          />{" "}
        </>
      ))}
    </td>
  </tr>
);

const used = (tokens: number | null, limit: number | null): string =>
  limit === null ? count(tokens ?? 0) : `${count(tokens ?? 0)} of ${count(limit)}`;

function limitsOf({ models, addresses, expires_at, expired, ...key }: AccountKey): string {
  const parts = [
    models === null ? "all models" : models.join(", "),
    ...(addresses === null ? [] : [`from ${addresses.join(", ")}`]),
    ...(expires_at === null || expired ? [] : [`until ${date(Date.parse(expires_at) - 1)}`]),
    ...(key.forwards_users ? ["names its end users"] : []),
    ...(key.limit_end_user_day === null ? [] : [`${count(key.limit_end_user_day)} a day for each`]),
    ...(key.priority === null ? [] : [key.priority]),
    ...countsInWords(key, count),
  ];
  return parts.join("; ");
}

type KeyDialogProps = Readonly<{ shown: AccountKey; onClose: () => void; onDone: () => void }>;

const RenameDialog = ({ shown, onClose, onDone }: KeyDialogProps): VNode => (
  <NameDialog
    title="Rename the key"
    hint="The key itself stays as it is"
    name={shown.name}
    maxLength={64}
    caption="Rename"
    onName={async (name) => {
      await post(`/keys/${shown.id}/name`, { name });
      onDone();
    }}
    onClose={onClose}
  />
);

const RevokeDialog = ({ shown, onClose, onDone }: KeyDialogProps): VNode => (
  <Confirm
    title="Revoke the key?"
    confirm="Revoke key"
    onConfirm={async () => {
      await post(`/keys/${shown.id}/revoke`);
      toast(`The key ${shown.name} is void.`);
      onDone();
    }}
    onClose={onClose}
  >
    <p>
      <strong>{shown.name}</strong> is void <strong>at once</strong> and for good. Replies in progress still finish, and
      its past requests stay on the usage page.
    </p>
  </Confirm>
);
