// A link of this server, with a button that copies it.
import type { VNode } from "preact";
import { session } from "../session.ts";
import { CopyButton } from "./copy-button.tsx";

export function ShownLink({ path }: { path: string }): VNode {
  const link = (session.value?.base_url ?? location.origin) + path;
  return (
    <div class="secret">
      <code>{link}</code>
      <CopyButton text={link} label="Copy the link" />
    </div>
  );
}
