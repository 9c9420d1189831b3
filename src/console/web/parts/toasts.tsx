// Short messages that appear and disappear, and that screen readers announce.
import { signal } from "@preact/signals";
import type { VNode } from "preact";
import { Icon } from "./icons.tsx";
import { Button, IconButton } from "./button.tsx";
import { t } from "../texts.ts";

type Toast = Readonly<{ id: number; text: string; kind: "done" | "failed"; undo: (() => Promise<unknown>) | null }>;

const shownMs = 5_000;
/** Time to see the mistake. */
const undoShownMs = 12_000;
const toasts = signal<readonly Toast[]>([]);
let last = 0;

export function toast(text: string, kind: Toast["kind"] = "done"): void {
  show({ id: ++last, text, kind, undo: null }, shownMs);
}

/** Says what was done, with a button that takes it back: in place of a question before what can be taken back whole. */
export function toastWithUndo(text: string, undo: () => Promise<unknown>): void {
  show({ id: ++last, text, kind: "done", undo }, undoShownMs);
}

function show(shown: Toast, ms: number): void {
  toasts.value = [...toasts.value.slice(-2), shown];
  setTimeout(() => dismiss(shown.id), ms);
}

function takeBack({ id, undo }: Toast): void {
  dismiss(id);
  undo?.().catch((error: Error) => toast(error.message, "failed"));
}

function dismiss(id: number): void {
  toasts.value = toasts.value.filter((shown) => shown.id !== id);
}

export const Toasts = (): VNode => (
  <div class="toasts" role="status" aria-live="polite">
    {toasts.value.map((shown) => (
      <div key={shown.id} class={`toast ${shown.kind}`}>
        <Icon name={shown.kind === "done" ? "check" : "warning"} size={16} />
        <span>{shown.text}</span>
        {shown.undo !== null && (
          <Button caption={t("common.undo")} class="button small" onClick={() => takeBack(shown)} />
        )}
        <IconButton icon="close" size={14} label={t("common.dismiss")} onClick={() => dismiss(shown.id)} />
      </div>
    ))}
  </div>
);
