// The dialogs that create a named key and change its limits.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { countNames, isOfEndUsers } from "../../../core/count-limits.ts";
import { priorities } from "../../../core/priority.ts";
import type { AccountKey, CreatedAccountKey, KeyLimits } from "../../api/keys.ts";
import { FormDialog } from "../parts/asking-dialogs.tsx";
import { Field, TextField } from "../parts/field.tsx";
import { Select } from "../parts/select.tsx";
import type { KeyActs } from "./key-acts.ts";
import { sells } from "../session.ts";
import { t } from "../texts.ts";

const dayMs = 86_400_000;

type Limit = keyof KeyLimits & string;
/** What the fields have, by the names of the limits; a new key also gets a name. */
type Fields = Readonly<Record<Exclude<Limit, "forwards_users"> | "name", string>>;

const countsOf = (ofEndUsers: boolean) => countNames.filter(([name]) => isOfEndUsers(name) === ofEndUsers);
const tokenNames = ["limit_day", "limit_month", "limit_end_user_day"] as const;
const texts = ["expires_at", "models", "addresses", "priority", "priority_max"] as const;
const fieldNames = [...texts, ...tokenNames, ...countNames.map(([name]) => name)];
const empty = Object.fromEntries(["name", ...fieldNames].map((name) => [name, ""])) as Fields;

type NewKeyDialogProps = Readonly<{
  acts: KeyActs;
  onClose: () => void;
  onMade: (key: CreatedAccountKey) => void;
}>;

export const NewKeyDialog = ({ acts, onClose, onMade }: NewKeyDialogProps): VNode => (
  <KeyDialog
    title={t("keys.new")}
    given={empty}
    forwarded={false}
    submit={t("keys.make")}
    onClose={onClose}
    send={async (fields, forwards) => {
      const wanted = {
        name: fields.name,
        ...limitsOf(fields, empty, forwards),
        ...(forwards && { forwards_users: true }),
      };
      onMade(await acts.create(wanted as { name: string }));
    }}
  />
);

type LimitsDialogProps = Readonly<{ acts: KeyActs; shown: AccountKey; onClose: () => void; onDone: () => void }>;

export const LimitsDialog = ({ acts, shown, onClose, onDone }: LimitsDialogProps): VNode => {
  const given = fieldsOf(shown);
  return (
    <KeyDialog
      title={t("keys.limits_of", { name: shown.name })}
      given={given}
      forwarded={shown.forwards_users}
      submit={t("keys.save_limits")}
      onClose={onClose}
      send={async (fields, forwards) => {
        const changed = limitsOf(fields, given, forwards);
        await acts.limit(shown.id, {
          ...changed,
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
  const isLimited = sells.value || tokenNames.some((name) => given[name] !== "");
  const onValue = (name: keyof Fields) => (value: string) => setFields({ ...fields, [name]: value });
  const text = (name: keyof Fields, label: string, hint: string, more: object = {}): VNode => (
    <TextField label={label} hint={hint} autocomplete="off" {...more} value={fields[name]} onValue={onValue(name)} />
  );
  const counts = (ofEndUsers: boolean): readonly VNode[] =>
    countsOf(ofEndUsers).map(([name]) => {
      const isLine = name === "weight" || name.endsWith("parallel");
      return text(
        name,
        t(`limit.${name}`),
        t(name === "weight" ? "limit.weight_hint" : isLine ? "limit.others_wait" : "limit.others_refused"),
        { ...whole, title: t("keys.whole_number") },
      );
    });
  const priority = (name: "priority" | "priority_max", label: string, hint: string): VNode => (
    <Field label={label} hint={hint}>
      {(control) => (
        <Select
          {...control}
          value={fields[name]}
          options={priorities.map((each) => [each, t(`class.${each}`)] as const)}
          all={t("keys.as_plan")}
          onValue={onValue(name)}
        />
      )}
    </Field>
  );
  return (
    <FormDialog title={title} submit={submit} onSubmit={() => send(fields, forwards)} onClose={onClose}>
      {isNew && text("name", t("common.name"), t("keys.name_hint"), { required: true, maxLength: 64, autofocus: true })}
      {isLimited && (
        <div class="grid-3">
          {text("limit_day", t("keys.day"), t("keys.day_hint"), { ...whole, autofocus: !isNew })}
          {text("limit_month", t("keys.month"), t("keys.month_hint"), whole)}
        </div>
      )}
      {text("expires_at", t("keys.last_day"), t("keys.last_day_hint"), {
        type: "date",
        autofocus: !isNew && !isLimited,
      })}
      {text("models", t("menu.models"), t("keys.models_hint"))}
      {text("addresses", t("keys.addresses"), t("keys.addresses_hint"))}
      <details
        class="stack"
        open={[...countsOf(false), ["priority"], ["priority_max"]].some(([name]) => given[name as keyof Fields] !== "")}
      >
        <summary>{t("keys.requests")}</summary>
        <div class="grid-3">
          {counts(false)}
          {priority("priority", t("keys.priority"), t("keys.priority_hint"))}
          {priority("priority_max", t("keys.priority_max"), t("keys.priority_max_hint"))}
        </div>
      </details>
      <ForwardsChoice forwards={forwards} onForwards={setForwards} />
      {forwards && (
        <div class="grid-3">
          {isLimited && text("limit_end_user_day", t("keys.person_day"), t("keys.person_day_hint"), whole)}
          {counts(true)}
        </div>
      )}
    </FormDialog>
  );
}

type ForwardsProps = Readonly<{ forwards: boolean; onForwards: (forwards: boolean) => void }>;

const ForwardsChoice = ({ forwards, onForwards }: ForwardsProps): VNode => (
  <label class="check">
    <input type="checkbox" checked={forwards} onChange={(event) => onForwards(event.currentTarget.checked)} />
    <span>
      {t("keys.forwards")}
      <span class="quiet small-text">{t("keys.forwards_about")}</span>
    </span>
  </label>
);

const whole = { inputMode: "numeric", pattern: "[0-9]{1,15}" };

const fieldsOf = (key: AccountKey): Fields => ({
  ...empty,
  ...Object.fromEntries(fieldNames.map((name) => [name, String(key[name] ?? "")])),
  name: key.name,
  expires_at: key.expires_at === null ? "" : new Date(Date.parse(key.expires_at) - 1).toISOString().slice(0, 10),
  models: (key.models ?? []).join(", "),
  addresses: (key.addresses ?? []).join(", "),
});

/** Untouched fields are left out: a limit keeps its exact value, such as an expiry in the middle of a day. */
function limitsOf(fields: Fields, given: Fields, forwards: boolean): KeyLimits {
  const isTouched = (name: keyof Fields) => fields[name] !== given[name] && (forwards || !name.includes("end_user"));
  return Object.fromEntries(fieldNames.filter(isTouched).map((name) => [name, valueOf(name, fields[name])]));
}

function valueOf(name: (typeof fieldNames)[number], text: string): unknown {
  const value = text.trim();
  if (value === "") return null;
  if (name === "expires_at") return new Date(Date.parse(value) + dayMs).toISOString(); // the last day is included
  if (name === "priority" || name === "priority_max") return value;
  if (name !== "models" && name !== "addresses") return Number(value);
  const parts = value.split(",").map((part) => part.trim());
  return parts.filter((part) => part !== "");
}
