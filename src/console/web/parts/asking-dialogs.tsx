// Dialogs that send something, and buttons that ask first. Apart from dialog.tsx, which the first page needs.
import type { ComponentChildren, VNode } from "preact";
import { useState } from "preact/hooks";
import { useAction } from "../resource.ts";
import { t } from "../texts.ts";
import { Dialog } from "./dialog.tsx";
import { FormError } from "./field.tsx";
import { Button } from "./button.tsx";

type FormDialogProps = Readonly<{
  title: string;
  children: ComponentChildren;
  submit: string;
  kind?: "primary" | "danger";
  /** False: it cannot be sent yet. */
  ready?: boolean;
  /** Sends the form; the dialog shows why it failed. */
  onSubmit: () => Promise<void>;
  onClose: () => void;
}>;

export function FormDialog(props: FormDialogProps): VNode {
  const { title, children, submit, kind = "primary", ready = true, onSubmit, onClose } = props;
  const action = useAction();
  return (
    <Dialog title={title} onClose={onClose}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          event.stopPropagation(); // the dialog may stand inside a form of the page
          void action.run(onSubmit);
        }}
      >
        {children}
        <FormError message={action.error} />
        <footer>
          <Button caption={t("common.cancel")} onClick={onClose} />
          <Button caption={submit} type="submit" class={`button ${kind}`} busy={action.busy} disabled={!ready} />
        </footer>
      </form>
    </Dialog>
  );
}

type ConfirmProps = Readonly<{
  title: string;
  children: ComponentChildren;
  confirm: string;
  /** Does it; the dialog then closes, or shows why it failed. */
  onConfirm: () => Promise<void>;
  onClose: () => void;
  /** A red button, for changes that cannot be undone. */
  danger?: boolean;
}>;

/** Asks before a change; the focus starts on Cancel. */
export function Confirm({ title, children, confirm, onConfirm, onClose, danger = true }: ConfirmProps): VNode {
  const action = useAction();
  return (
    <Dialog title={title} onClose={onClose}>
      <div class="prose">{children}</div>
      <FormError message={action.error} />
      <footer>
        <Button caption={t("common.cancel")} autofocus onClick={onClose} />
        <Button
          caption={confirm}
          class={`button ${danger ? "danger" : "primary"}`}
          busy={action.busy}
          onClick={() => void action.run(onConfirm).then((done) => done && onClose())}
        />
      </footer>
    </Dialog>
  );
}

type AskButtonProps = Omit<ConfirmProps, "onClose"> &
  Readonly<{
    caption: string;
    /** The button's name for screen readers, where the caption alone is unclear. */
    label?: string;
    class?: string;
    disabled?: boolean;
    hint?: string | undefined;
  }>;

export function AskButton({ caption, label, class: look = "button", disabled, hint, ...ask }: AskButtonProps): VNode {
  const [asking, setAsking] = useState(false);
  return (
    <>
      <Button
        caption={caption}
        class={look}
        aria-label={label}
        disabled={disabled}
        title={hint}
        onClick={() => setAsking(true)}
      />
      {asking && <Confirm {...ask} onClose={() => setAsking(false)} />}
    </>
  );
}
