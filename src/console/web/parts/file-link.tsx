// A link that saves what the server makes as a file.
import type { VNode } from "preact";
import { Icon } from "./icons.tsx";

export const FileLink = ({ caption, href, name = "" }: { caption: string; href: string; name?: string }): VNode => (
  <a class="button" data-leaves download={name} href={href}>
    <Icon name="download" size={16} /> {caption}
  </a>
);
