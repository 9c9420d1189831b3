// What the tags in a text become: `<strong>`, `<code>` and others that have no place to lead to.
import type { ComponentChildren, VNode } from "preact";

export const strong = (inner: ComponentChildren): VNode => <strong>{inner}</strong>;
export const code = (inner: ComponentChildren): VNode => <code>{inner}</code>;
