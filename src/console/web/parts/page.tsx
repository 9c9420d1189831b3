// The frame of a page: its heading, which gets the focus when the page is shown, and its actions.
import type { ComponentChildren, VNode } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Icon } from "./icons.tsx";
import { hasMoved } from "../route.ts";

type PageProps = Readonly<{
  title: string;
  children: ComponentChildren;
  actions?: ComponentChildren;
  lead?: ComponentChildren;
  /** The list of which this is one row. */
  back?: Readonly<{ href: string; name: string }>;
}>;

export function Page({ title, children, actions, lead, back }: PageProps): VNode {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${title} · Tollgate`;
  }, [title]);
  useEffect(() => {
    // Screen readers then announce each new page; the first page is announced by the browser.
    if (!hasMoved()) return;
    heading.current?.focus({ preventScroll: true });
    scrollTo(0, 0);
  }, []);
  return (
    <div class="page">
      <header class="page-head">
        <div>
          {back !== undefined && (
            <a class="back small-text" href={back.href}>
              <Icon name="back" size={14} />
              {back.name}
            </a>
          )}
          <h1 ref={heading} tabIndex={-1}>
            {title}
          </h1>
          {lead !== undefined && <p class="quiet">{lead}</p>}
        </div>
        {actions !== undefined && <div class="actions">{actions}</div>}
      </header>
      {children}
    </div>
  );
}
