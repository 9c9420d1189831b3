// Dialogs built on the browser's own <dialog>, which keeps the focus inside, closes on Escape and restores the focus.
import type { ComponentChildren, VNode } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";
import { IconButton } from "./button.tsx";
import { t } from "../texts.ts";

type ModalProps = Readonly<{
  class: string;
  "aria-label"?: string;
  "aria-labelledby"?: string;
  onClose: () => void;
  children: ComponentChildren;
}>;

/** A dialog without anything in it; a click beside it and Escape close it. */
export function Modal({ onClose, children, ...attributes }: ModalProps): VNode {
  const dialog = useRef<HTMLDialogElement>(null);
  const gone = useRef(false);
  // A layout effect, because other effects end after the dialog has left the page, where it can no longer be closed.
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
      {...attributes}
      // At once on Escape: the browser's own close event comes a moment later, and a key pressed in that moment is lost.
      onCancel={(event) => {
        if (event.target !== dialog.current) return; // from a file chooser inside
        event.preventDefault();
        onClose();
      }}
      // The browser may also close it by itself.
      onClose={() => !gone.current && onClose()}
      onClick={(event) => event.target === dialog.current && onClose()}
    >
      {children}
    </dialog>
  );
}

type DialogProps = Readonly<{
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  /** A sheet slides in from the right and fills the window's height; a drawer does so from the left. */
  kind?: "box" | "sheet" | "sheet drawer";
}>;

export function Dialog({ title, onClose, children, kind = "box" }: DialogProps): VNode {
  const heading = useId();
  return (
    <Modal class={kind} aria-labelledby={heading} onClose={onClose}>
      <div class="dialog-body">
        <header>
          <h2 id={heading}>{title}</h2>
          <IconButton icon="close" label={t("common.close")} onClick={onClose} />
        </header>
        {children}
      </div>
    </Modal>
  );
}
