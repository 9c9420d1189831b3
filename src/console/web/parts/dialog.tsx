// Dialogs built on the browser's own <dialog>, which keeps the focus inside, closes on Escape and restores the focus.
import type { ComponentChildren, VNode } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";
import type { Action } from "../resource.ts";
import { Icon } from "./icons.tsx";

type DialogProps = Readonly<{
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  /** A sheet comes from the side and is as tall as the window; a drawer is one from where the list belongs. */
  kind?: "box" | "sheet" | "sheet drawer";
}>;

export function Dialog({ title, onClose, children, kind = "box" }: DialogProps): VNode {
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useId();
  const gone = useRef(false);
  // Its end is a layout effect's: that of others runs when the dialog is out of the page, where it cannot be closed anymore.
  useLayoutEffect(() => {
    const shown = dialog.current;
    if (shown !== null && !shown.open) shown.showModal();
    return () => {
      gone.current = true;
      shown?.close(); // gives the focus back
    };
  }, []);
  return (
    <dialog
      ref={dialog}
      class={kind}
      aria-labelledby={heading}
      // Escape at once: the browser gives the focus back before it tells, and Enter in that moment opened nothing.
      onCancel={(event) => {
        if (event.target !== dialog.current) return; // a file chooser's within
        event.preventDefault();
        onClose();
      }}
      // However else the browser closed it, the page has to know.
      onClose={() => !gone.current && onClose()}
      onClick={(event) => event.target === dialog.current && onClose()}
    >
      <div class="dialog-body">
        <header>
          <h2 id={heading}>{title}</h2>
          <button type="button" class="icon-button" aria-label="Close" onClick={onClose}>
            <Icon name="close" />
          </button>
        </header>
        {children}
      </div>
    </dialog>
  );
}

type ConfirmProps = Readonly<{
  title: string;
  children: ComponentChildren;
  confirm: string;
  action: Action;
  onConfirm: () => void;
  onClose: () => void;
  /** A red button for what cannot be undone. */
  danger?: boolean;
}>;

/** Asks before something that cannot be undone; the focus starts on the way out. */
export function Confirm({ title, children, confirm, action, onConfirm, onClose, danger = true }: ConfirmProps): VNode {
  return (
    <Dialog title={title} onClose={onClose}>
      <div class="prose">{children}</div>
      {action.error !== null && (
        <p class="form-error" role="alert">
          {action.error}
        </p>
      )}
      <footer>
        <button type="button" class="button" autofocus onClick={onClose}>
          Cancel
        </button>
        <button
          type="button"
          class={`button ${danger ? "danger" : "primary"}`}
          aria-busy={action.busy}
          disabled={action.busy}
          onClick={onConfirm}
        >
          {confirm}
        </button>
      </footer>
    </Dialog>
  );
}
