// Labeled form fields, whose hint and error are tied to them for screen readers.
import type { ComponentChildren, ComponentProps, VNode } from "preact";
import { useId } from "preact/hooks";

type LabelProps = Readonly<{ label: string; hint?: ComponentChildren; error?: string | null }>;

type FieldProps = LabelProps &
  Readonly<{
    /** Gets the id and the description's id that the control must carry. */
    children: (control: { id: string; "aria-describedby"?: string; "aria-invalid"?: boolean }) => VNode;
  }>;

export function Field({ label, hint, error = null, children }: FieldProps): VNode {
  const id = useId();
  const described = hint !== undefined || error !== null;
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children({
        id,
        "aria-describedby": described ? `${id}-about` : undefined,
        "aria-invalid": error !== null ? true : undefined,
      })}
      {described && (
        <p id={`${id}-about`} class={error === null ? "hint" : "hint wrong"}>
          {error ?? hint}
        </p>
      )}
    </div>
  );
}

type Valued<Value, Given = Value> = LabelProps & Readonly<{ value: Value; onValue: (value: Given) => void }>;

type TextProps = Valued<string> &
  (Readonly<{ type?: "text" }> | Readonly<{ type: "password" }> | Readonly<{ type: "date" }>) &
  Pick<
    ComponentProps<"input">,
    | "autocapitalize"
    | "autocomplete"
    | "autofocus"
    | "inputMode"
    | "maxLength"
    | "minLength"
    | "pattern"
    | "readOnly"
    | "required"
    | "spellcheck"
    | "title"
  >;

/** One line of text, or what `type` says. */
export const TextField = ({ label, hint, error, value, onValue, ...input }: TextProps): VNode => (
  <Field label={label} hint={hint} error={error}>
    {(control) => (
      <input {...control} {...input} value={value} onInput={(event) => onValue(event.currentTarget.value)} />
    )}
  </Field>
);

type NumberProps = Valued<number | null, number> &
  Pick<ComponentProps<"input">, "max" | "min" | "placeholder" | "required" | "step">;

/** `onValue` gets NaN where the field holds no number. */
export const NumberField = ({ label, hint, error, value, onValue, ...input }: NumberProps): VNode => (
  <Field label={label} hint={hint} error={error}>
    {(control) => (
      <input
        {...control}
        {...input}
        type="number"
        value={value ?? ""}
        onInput={(event) => onValue(event.currentTarget.valueAsNumber)}
      />
    )}
  </Field>
);

type LongProps = Valued<string> &
  Pick<ComponentProps<"textarea">, "autocapitalize" | "class" | "maxLength" | "placeholder" | "rows" | "spellcheck">;

/** Several lines of text. */
export const LongField = ({ label, hint, error, value, onValue, ...area }: LongProps): VNode => (
  <Field label={label} hint={hint} error={error}>
    {(control) => (
      <textarea {...control} {...area} value={value} onInput={(event) => onValue(event.currentTarget.value)} />
    )}
  </Field>
);

export const FormError = ({ message }: { message: string | null }): VNode | null =>
  message === null ? null : (
    <p class="form-error" role="alert">
      {message}
    </p>
  );
