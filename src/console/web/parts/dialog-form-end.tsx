// The end of a form in a dialog: the error, the cancel button, and the submit button.
import type { ComponentChildren, VNode } from "preact";
import type { Action } from "../resource.ts";
import { FormError } from "./field.tsx";

type DialogFormEndProps = Readonly<{
  action: Action;
  onCancel: () => void;
  kind?: "primary" | "danger";
  /** False: it cannot be sent yet. */
  ready?: boolean;
  /** What the sending button says. */
  children: ComponentChildren;
}>;

export function DialogFormEnd({
  action,
  onCancel,
  kind = "primary",
  ready = true,
  children,
}: DialogFormEndProps): VNode {
  return (
    <>
      <FormError message={action.error} />
      <footer>
        <button type="button" class="button" onClick={onCancel}>
          Cancel
        </button>
        <button type="submit" class={`button ${kind}`} aria-busy={action.busy} disabled={action.busy || !ready}>
          {children}
        </button>
      </footer>
    </>
  );
}
