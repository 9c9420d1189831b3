// Opens the palette by Ctrl-K or its button. The palette itself is loaded when it is first opened.
import { signal } from "@preact/signals";
import type { ComponentType, VNode } from "preact";
import { useLayoutEffect } from "preact/hooks";
import { Icon } from "../parts/icons.tsx";
import { toast } from "../parts/toasts.tsx";
import { IconButton } from "../parts/button.tsx";
import { later, t } from "../texts.ts";

const isOpen = signal(false);
const loaded = signal<ComponentType<{ onClose: () => void }> | null>(null);

function open(): void {
  isOpen.value = true;
  if (loaded.value !== null) return;
  later(import("./palette.tsx")).then(
    ({ Palette }) => {
      loaded.value = Palette;
    },
    () => {
      isOpen.value = false;
      toast(t("palette.not_loaded"), "failed");
    },
  );
}

const isApple = /^(?:Mac|iPhone|iPad)/.test(navigator.platform);

/** Every page has one. */
export function PaletteHost(): VNode | null {
  // As soon as the page is drawn: its keys are typed right after.
  useLayoutEffect(() => {
    const onKeyDown = (event: KeyboardEvent): void => {
      if (event.key.toLowerCase() !== "k" || event.shiftKey || event.altKey) return;
      if (isApple ? !event.metaKey : !event.ctrlKey) return;
      event.preventDefault();
      if (isOpen.value) isOpen.value = false;
      else open();
    };
    addEventListener("keydown", onKeyDown);
    return () => {
      removeEventListener("keydown", onKeyDown);
      isOpen.value = false;
    };
  }, []);
  const Drawn = loaded.value;
  return isOpen.value && Drawn !== null ? <Drawn onClose={() => (isOpen.value = false)} /> : null;
}

export const PaletteButton = (): VNode => (
  <button type="button" class="palette-door" aria-haspopup="dialog" onClick={open}>
    <Icon name="search" size={16} />
    <span>{t("palette.go_to")}</span>
    <kbd>{isApple ? "⌘K" : t("palette.keys")}</kbd>
  </button>
);

export const PaletteIconButton = (): VNode => (
  <IconButton icon="search" label={t("palette.go_to")} aria-haspopup="dialog" onClick={open} />
);
