// The frame of the pages before the shell: signing in, coming back from a provider, and using a link.
import type { ComponentChildren, VNode } from "preact";
import { useEffect } from "preact/hooks";
import { sells } from "../session.ts";
import { Mark } from "./icons.tsx";
import { ThemeChoice } from "./theme-choice.tsx";

type DoorProps = Readonly<{
  title: string;
  heading: string;
  lead?: string;
  children: ComponentChildren;
}>;

export function Door({
  title,
  heading,
  lead = `One address, one key${sells.value ? ", one balance" : ""} for language models`,
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
        <ThemeChoice />
      </footer>
    </div>
  );
}
