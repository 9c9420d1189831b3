// Buttons: with a caption, or with an icon, beside which a word may stand where there is room.
import type { ComponentProps, VNode } from "preact";
import { t, type TextKey } from "../texts.ts";
import { Icon, type IconName } from "./icons.tsx";

type ButtonProps = Omit<ComponentProps<"button">, "class" | "disabled"> &
  Readonly<{
    caption: string | null;
    class?: string;
    /** Its action runs. */
    busy?: boolean;
    disabled?: boolean | undefined;
  }>;

export const Button = ({ caption, class: look = "button", busy, disabled, ...button }: ButtonProps): VNode => (
  <button type="button" class={look} aria-busy={busy} disabled={busy === true || disabled} {...button}>
    {caption}
  </button>
);

type IconButtonProps = Omit<ComponentProps<"button">, "class" | "icon" | "size"> &
  Readonly<{ icon: IconName; size?: number; label: string; look?: string | undefined; word?: TextKey }>;

export const IconButton = ({ icon, size, label, look = "", word, ...button }: IconButtonProps): VNode => (
  <button type="button" class={`icon-button ${look}`.trim()} aria-label={label} {...button}>
    <Icon name={icon} size={size} />
    {word !== undefined && <span class="icon-word">{t(word)}</span>}
  </button>
);
