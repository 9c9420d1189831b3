// The dialogs that create a named key and change its limits.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { AccountKey, CreatedAccountKey, KeyLimits } from "../../api/keys.ts";
import { FormDialog } from "../parts/asking-dialogs.tsx";
import { TextField } from "../parts/field.tsx";
import { post } from "../request.ts";
import { sells } from "../session.ts";

const dayMs = 86_400_000;

const empty = { name: "", day: "", month: "", expires: "", models: "", addresses: "", each: "" };
type Fields = typeof empty;

type NewKeyDialogProps = Readonly<{ onClose: () => void; onMade: (key: CreatedAccountKey) => void }>;

export const NewKeyDialog = ({ onClose, onMade }: NewKeyDialogProps): VNode => (
  <KeyDialog
    title="New key"
    given={empty}
    forwarded={false}
    submit="Make key"
    onClose={onClose}
    send={async (fields, forwards) => {
      const limits = limitsOf(fields, (name) => name !== "each" || forwards);
      const said = Object.entries(limits).filter(([, limit]) => limit !== null);
      const wanted = { name: fields.name, ...Object.fromEntries(said), ...(forwards ? { forwards_users: true } : {}) };
      onMade(await post("/keys", wanted));
    }}
  />
);

type LimitsDialogProps = Readonly<{ shown: AccountKey; onClose: () => void; onDone: () => void }>;

export const LimitsDialog = ({ shown, onClose, onDone }: LimitsDialogProps): VNode => {
  const given = fieldsOf(shown);
  return (
    <KeyDialog
      title={`Limits of ${shown.name}`}
      given={given}
      forwarded={shown.forwards_users}
      submit="Save limits"
      onClose={onClose}
      send={async (fields, forwards) => {
        // An untouched field keeps its exact value, such as an expiry in the middle of a day.
        const isTouched = (name: keyof Fields) => fields[name] !== given[name] && (name !== "each" || forwards);
        await post(`/keys/${shown.id}/limits`, {
          ...limitsOf(fields, isTouched),
          ...(forwards === shown.forwards_users ? {} : { forwards_users: forwards }),
        });
        onDone();
      }}
    />
  );
};

type KeyDialogProps = Readonly<{
  title: string;
  given: Fields;
  /** Whether the key's program may name its end users. */
  forwarded: boolean;
  submit: string;
  onClose: () => void;
  send: (fields: Fields, forwards: boolean) => Promise<void>;
}>;

/** A new key also gets a name. */
function KeyDialog({ title, given, forwarded, submit, onClose, send }: KeyDialogProps): VNode {
  const [fields, setFields] = useState<Fields>(given);
  const [forwards, setForwards] = useState(forwarded);
  const isNew = given.name === "";
  /** These are balance tokens: where nothing costs any, no limit would ever be reached. */
  const isLimited = sells.value || [given.day, given.month, given.each].some((limit) => limit !== "");
  const text = (name: keyof Fields, label: string, hint: string, more: object = {}): VNode => (
    <TextField
      label={label}
      hint={hint}
      autocomplete="off"
      {...more}
      value={fields[name]}
      onValue={(value) => setFields({ ...fields, [name]: value })}
    />
  );
  const whole = { inputMode: "numeric", pattern: "[0-9]{1,15}", title: "A whole number" };
  return (
    <FormDialog title={title} submit={submit} onSubmit={() => send(fields, forwards)} onClose={onClose}>
      {isNew &&
        text("name", "Name", "The program or person that uses it", { required: true, maxLength: 64, autofocus: true })}
      {isLimited && (
        <div class="grid-2">
          {text("day", "Tokens a day", "Empty: no limit of its own", { ...whole, autofocus: !isNew })}
          {text("month", "Tokens a month", "By the UTC calendar", whole)}
        </div>
      )}
      {text("expires", "Last day", "In UTC; empty: it does not expire", {
        type: "date",
        autofocus: !isNew && !isLimited,
      })}
      {text("models", "Models", "Separated by commas; empty: all")}
      {text("addresses", "Addresses", "Such as 10.0.0.0/8, separated by commas; empty: all")}
      <label class="check">
        <input type="checkbox" checked={forwards} onChange={(event) => setForwards(event.currentTarget.checked)} />
        <span>
          It belongs to a program that serves people
          <span class="quiet small-text">
            Such as Open WebUI or a bot. The program names the person behind each request, and your usage shows it.
          </span>
        </span>
      </label>
      {forwards &&
        isLimited &&
        text("each", "Tokens a day for each person", "Empty: they share the key's limits", whole)}
    </FormDialog>
  );
}

const fieldsOf = ({ name, limit_day, limit_month, expires_at, models, addresses, ...key }: AccountKey): Fields => ({
  name,
  day: limit_day === null ? "" : String(limit_day),
  month: limit_month === null ? "" : String(limit_month),
  expires: expires_at === null ? "" : new Date(Date.parse(expires_at) - 1).toISOString().slice(0, 10),
  models: (models ?? []).join(", "),
  addresses: (addresses ?? []).join(", "),
  each: key.limit_end_user_day === null ? "" : String(key.limit_end_user_day),
});

function limitsOf(
  { day, month, expires, models, addresses, each }: Fields,
  isWanted: (name: keyof Fields) => boolean,
): KeyLimits {
  const list = (text: string): string[] | null => {
    const parts = text
      .split(",")
      .map((part) => part.trim())
      .filter((part) => part !== "");
    return parts.length === 0 ? null : parts;
  };
  return {
    ...(isWanted("day") && { limit_day: day === "" ? null : Number(day) }),
    ...(isWanted("month") && { limit_month: month === "" ? null : Number(month) }),
    // The last day is included.
    ...(isWanted("expires") && {
      expires_at: expires === "" ? null : new Date(Date.parse(expires) + dayMs).toISOString(),
    }),
    ...(isWanted("models") && { models: list(models) }),
    ...(isWanted("addresses") && { addresses: list(addresses) }),
    ...(isWanted("each") && { limit_end_user_day: each === "" ? null : Number(each) }),
  };
}
