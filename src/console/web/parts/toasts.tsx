// Short messages that appear and disappear, and that screen readers announce.
import { signal } from "@preact/signals";
import type { VNode } from "preact";
import { Icon } from "./icons.tsx";
import { Button, IconButton } from "./button.tsx";

type ToastAction = Readonly<{ caption: string; act: () => void }>;
type Toast = Readonly<{ id: number; text: string; kind: "done" | "failed"; action: ToastAction | undefined }>;

const shownMs = 5_000;
/** One that offers something is there to be reached, by keyboard, too. */
const offeredMs = 12_000;
const toasts = signal<readonly Toast[]>([]);
let last = 0;

export function toast(text: string, kind: Toast["kind"] = "done", action?: ToastAction): void {
  const id = ++last;
  toasts.value = [...toasts.value.slice(-2), { id, text, kind, action }];
  setTimeout(() => dismiss(id), action === undefined ? shownMs : offeredMs);
}

function dismiss(id: number): void {
  toasts.value = toasts.value.filter((shown) => shown.id !== id);
}

export const Toasts = (): VNode => (
  <div class="toasts" role="status" aria-live="polite">
    {toasts.value.map(({ id, text, kind, action }) => (
      <div key={id} class={`toast ${kind}`}>
        <Icon name={kind === "done" ? "check" : "warning"} size={16} />
        <span>{text}</span>
        {action !== undefined && (
          <Button
            caption={action.caption}
            class="link-button"
            onClick={() => {
              dismiss(id);
              action.act();
            }}
          />
        )}
        <IconButton icon="close" size={14} label="Dismiss" onClick={() => dismiss(id)} />
      </div>
    ))}
  </div>
);
