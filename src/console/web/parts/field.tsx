// A labeled form field whose hint and error are tied to it for screen readers.
import type { ComponentChildren, VNode } from "preact";
import { useId } from "preact/hooks";

type FieldProps = Readonly<{
  label: string;
  hint?: ComponentChildren;
  error?: string | null;
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

export const FormError = ({ message }: { message: string | null }): VNode | null =>
  message === null ? null : (
    <p class="form-error" role="alert">
      {message}
    </p>
  );
