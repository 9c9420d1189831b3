// The frame of the pages before the shell: signing in, coming back from a provider, and using a link.
import type { ComponentChildren, VNode } from "preact";
import { useEffect } from "preact/hooks";
import { sells } from "../session.ts";
import { Mark } from "./icons.tsx";
import { LanguageChoice } from "./language-choice.tsx";
import { ThemeChoice } from "./theme-choice.tsx";
import { t } from "../texts.ts";

type DoorProps = Readonly<{
  title: string;
  heading: string;
  lead?: string;
  children: ComponentChildren;
}>;

export function Door({
  title,
  heading,
  lead = t(sells.value ? "door.lead_sells" : "door.lead"),
  children,
}: DoorProps): VNode {
  useEffect(() => {
    document.title = `${title} · Tollgate`;
  }, [title]);
  return (
    <div class="door">
      <main class="door-box">
        <div class="door-brand">
          <Mark size={40} />
          <h1>{heading}</h1>
          <p class="quiet">{lead}</p>
        </div>
        {children}
      </main>
      <footer class="door-foot">
        <LanguageChoice />
        <ThemeChoice />
      </footer>
    </div>
  );
}
