// The dialog that makes a named key.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { CreatedAccountKey, NewAccountKey } from "../../api.ts";
import { Dialog } from "../parts/dialog.tsx";
import { DialogFormEnd } from "../parts/dialog-form-end.tsx";
import { Field } from "../parts/field.tsx";
import { post } from "../request.ts";
import { useAction } from "../resource.ts";

const empty = { name: "", day: "", month: "", expires: "", models: "", addresses: "", each: "" };
type Fields = typeof empty;

type NewKeyDialogProps = Readonly<{ onClose: () => void; onMade: (key: CreatedAccountKey) => void }>;

export function NewKeyDialog({ onClose, onMade }: NewKeyDialogProps): VNode {
  const [fields, setFields] = useState<Fields>(empty);
  const [forwards, setForwards] = useState(false);
  const action = useAction();
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    void action.run(async () =>
      onMade(await post<CreatedAccountKey, NewAccountKey>("/keys", wantedOf(fields, forwards))),
    );
  };
  const text = (name: keyof Fields, label: string, hint: string, more: object = {}): VNode => (
    <Field label={label} hint={hint}>
      {(control) => (
        <input
          {...control}
          type="text"
          autocomplete="off"
          value={fields[name]}
          onInput={(event) => setFields({ ...fields, [name]: event.currentTarget.value })}
          {...more}
        />
      )}
    </Field>
  );
  const whole = { inputMode: "numeric", pattern: "[0-9]{1,15}", title: "A whole number" };
  return (
    <Dialog title="New key" onClose={onClose}>
      <form class="stack" onSubmit={submit}>
        {text("name", "Name", "The program or person that uses it", { required: true, maxLength: 64, autofocus: true })}
        <div class="grid-2">
          {text("day", "Tokens a day", "Empty: no limit of its own", whole)}
          {text("month", "Tokens a month", "By the UTC calendar", whole)}
        </div>
        {text("expires", "Last day", "Empty: it does not expire", { type: "date" })}
        {text("models", "Models", "Ids with commas between; empty: all")}
        {text("addresses", "Addresses", "Such as 10.0.0.0/8, with commas between; empty: all")}
        <label class="check">
          <input type="checkbox" checked={forwards} onChange={(event) => setForwards(event.currentTarget.checked)} />
          <span>
            It belongs to a program that serves people
            <span class="quiet small-text">
              Such as Open WebUI or a bot: what it says of who asks is believed, and your usage shows it.
            </span>
          </span>
        </label>
        {forwards && text("each", "Tokens a day for each of them", "Empty: they share the key's limits", whole)}
        <DialogFormEnd action={action} onCancel={onClose}>
          Make key
        </DialogFormEnd>
      </form>
    </Dialog>
  );
}

const dayMs = 86_400_000;

function wantedOf({ name, day, month, expires, models, addresses, each }: Fields, forwards: boolean): NewAccountKey {
  const list = (text: string): string[] =>
    text
      .split(",")
      .map((part) => part.trim())
      .filter((part) => part !== "");
  return {
    name,
    ...(day === "" ? {} : { limit_day: Number(day) }),
    ...(month === "" ? {} : { limit_month: Number(month) }),
    // People mean the whole last day.
    ...(expires === "" ? {} : { expires_at: new Date(Date.parse(expires) + dayMs).toISOString() }),
    ...(list(models).length === 0 ? {} : { models: list(models) }),
    ...(list(addresses).length === 0 ? {} : { addresses: list(addresses) }),
    ...(forwards ? { forwards_users: true } : {}),
    ...(forwards && each !== "" ? { limit_end_user_day: Number(each) } : {}),
  };
}
