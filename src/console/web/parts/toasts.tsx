// Short messages that appear and disappear, and that screen readers announce.
import { signal } from "@preact/signals";
import type { VNode } from "preact";
import { Icon } from "./icons.tsx";
import { IconButton } from "./button.tsx";
import { t } from "../texts.ts";

type Toast = Readonly<{ id: number; text: string; kind: "done" | "failed" }>;

const shownMs = 5_000;
const toasts = signal<readonly Toast[]>([]);
let last = 0;

export function toast(text: string, kind: Toast["kind"] = "done"): void {
  const id = ++last;
  toasts.value = [...toasts.value.slice(-2), { id, text, kind }];
  setTimeout(() => dismiss(id), shownMs);
}

function dismiss(id: number): void {
  toasts.value = toasts.value.filter((shown) => shown.id !== id);
}

export const Toasts = (): VNode => (
  <div class="toasts" role="status" aria-live="polite">
    {toasts.value.map(({ id, text, kind }) => (
      <div key={id} class={`toast ${kind}`}>
        <Icon name={kind === "done" ? "check" : "warning"} size={16} />
        <span>{text}</span>
        <IconButton icon="close" size={14} label={t("common.dismiss")} onClick={() => dismiss(id)} />
      </div>
    ))}
  </div>
);
