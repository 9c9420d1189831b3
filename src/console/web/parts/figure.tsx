// A card with one number, its name above and what it means below.
import type { ComponentChildren, VNode } from "preact";

type FigureProps = Readonly<{ name: string; value: string | null; children?: ComponentChildren }>;

/** Null: the number is not known yet. */
export const Figure = ({ name, value, children }: FigureProps): VNode => (
  <div class="card">
    <span class="figure-name">{name}</span>
    <p class="figure">{value ?? "–"}</p>
    <p class="quiet small-text">{children}</p>
  </div>
);
