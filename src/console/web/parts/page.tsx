// The frame of a page: its heading, which gets the focus when the page is shown, and its actions.
import type { ComponentChildren, VNode } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { hasMoved } from "../route.ts";

type PageProps = Readonly<{
  title: string;
  children: ComponentChildren;
  actions?: ComponentChildren;
  lead?: ComponentChildren;
}>;

export function Page({ title, children, actions, lead }: PageProps): VNode {
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
