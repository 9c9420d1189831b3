// The fields of forms about an account: its e-mail, password and plan.
import type { VNode } from "preact";
import { planChoices } from "../session.ts";
import { Field } from "./field.tsx";

export const passwordMinLength = 8;

type TextProps = Readonly<{
  value: string;
  onValue: (value: string) => void;
  hint?: string | undefined;
}>;

type EmailProps = TextProps &
  Readonly<{
    /** The browser offers the account's own. */
    isOwn?: boolean;
    isOptional?: boolean;
    isFixed?: boolean;
    hasFocus?: boolean;
  }>;

/** `text` and not `email`: the server is who says what an address is. */
export const EmailField = (props: EmailProps): VNode => {
  const { value, onValue, hint, isOwn = false, isOptional = false, isFixed = false, hasFocus = false } = props;
  return (
    <Field label="E-mail" hint={hint}>
      {(control) => (
        <input
          {...control}
          type="text"
          inputMode="email"
          autocomplete={isOwn ? "username" : "off"}
          autocapitalize="none"
          spellcheck={false}
          required={!isOptional}
          readOnly={isFixed}
          autofocus={hasFocus}
          value={value}
          onInput={(event) => onValue(event.currentTarget.value)}
        />
      )}
    </Field>
  );
};

type PasswordProps = TextProps & Readonly<{ label?: string; isNew: boolean; isOptional?: boolean }>;

export const PasswordField = ({ label = "Password", ...props }: PasswordProps): VNode => {
  const { value, onValue, isNew, isOptional = false } = props;
  const { hint = isNew ? `At least ${passwordMinLength} characters` : undefined } = props;
  return (
    <Field label={label} hint={hint}>
      {(control) => (
        <input
          {...control}
          type="password"
          autocomplete={isNew ? "new-password" : "current-password"}
          required={!isOptional}
          minLength={isNew ? passwordMinLength : undefined}
          value={value}
          onInput={(event) => onValue(event.currentTarget.value)}
        />
      )}
    </Field>
  );
};

export const PlanField = ({ value, onValue }: TextProps): VNode => (
  <Field label="Plan">
    {(control) => (
      <select {...control} value={value} onChange={(event) => onValue(event.currentTarget.value)}>
        {planChoices().map((id) => (
          <option key={id}>{id}</option>
        ))}
      </select>
    )}
  </Field>
);
