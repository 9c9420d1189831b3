// The fields of forms about an account: its e-mail, password and plan.
import type { VNode } from "preact";
import { planChoices } from "../session.ts";
import { Field, TextField } from "./field.tsx";
import { Select } from "./select.tsx";
import { t } from "../texts.ts";

export const passwordMinLength = 8;

type TextProps = Readonly<{
  value: string;
  onValue: (value: string) => void;
  hint?: string | undefined;
}>;

type EmailProps = TextProps &
  Readonly<{
    /** The browser offers the user's own address. */
    isOwn?: boolean;
    isOptional?: boolean;
    isFixed?: boolean;
    hasFocus?: boolean;
  }>;

/** `text` and not `email`: the server decides what an address is. */
export const EmailField = ({ isOwn, isOptional, isFixed, hasFocus, ...text }: EmailProps): VNode => (
  <TextField
    {...text}
    label={t("account_fields.email")}
    inputMode="email"
    autocomplete={isOwn === true ? "username" : "off"}
    autocapitalize="none"
    spellcheck={false}
    required={isOptional !== true}
    readOnly={isFixed}
    autofocus={hasFocus}
  />
);

type PasswordProps = TextProps & Readonly<{ label?: string; isNew: boolean; isOptional?: boolean }>;

export const PasswordField = ({
  label = t("account_fields.password"),
  isNew,
  isOptional,
  hint,
  ...text
}: PasswordProps): VNode => (
  <TextField
    {...text}
    label={label}
    hint={hint ?? (isNew ? t("account_fields.password_hint", { passwordMinLength }) : undefined)}
    type="password"
    autocomplete={isNew ? "new-password" : "current-password"}
    required={isOptional !== true}
    minLength={isNew ? passwordMinLength : undefined}
  />
);

/** The field in which people type a name to confirm a deletion. */
export const ConfirmationField = ({ label, ...text }: TextProps & Readonly<{ label: string }>): VNode => (
  <TextField {...text} label={label} autocomplete="off" spellcheck={false} />
);

export const PlanField = ({ value, onValue }: TextProps): VNode => (
  <Field label={t("account_fields.plan")}>
    {(control) => <Select {...control} value={value} onValue={onValue} options={planChoices()} />}
  </Field>
);
