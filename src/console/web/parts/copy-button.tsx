// A button that copies a text to the clipboard and confirms it.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { Icon } from "./icons.tsx";
import { toast } from "./toasts.tsx";
import { t } from "../texts.ts";

const confirmedMs = 1_500;

type CopyButtonProps = Readonly<{ text: string; label: string; caption?: string }>;

export function CopyButton({ text, label, caption }: CopyButtonProps): VNode {
  const [copied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    try {
      await writeClipboard(text);
    } catch {
      toast(t("copy.refused"), "failed");
      return;
    }
    setCopied(true);
    setTimeout(() => setCopied(false), confirmedMs);
  };
  return (
    <button
      type="button"
      class={caption === undefined ? "icon-button" : "button"}
      aria-label={label}
      onClick={() => void copy()}
    >
      <Icon name={copied ? "check" : "copy"} size={16} />
      {caption !== undefined && <span>{copied ? t("copy.copied") : caption}</span>}
      <span class="for-readers" role="status">
        {copied ? t("copy.copied") : ""}
      </span>
    </button>
  );
}

/** Over plain http from another machine, browsers can only copy from a field. */
async function writeClipboard(text: string): Promise<void> {
  if (navigator.clipboard !== undefined) return navigator.clipboard.writeText(text);
  const field = document.createElement("textarea");
  field.value = text;
  document.body.append(field);
  field.select();
  const copied = document.execCommand("copy");
  field.remove();
  if (!copied) throw new Error("copying was refused");
}
