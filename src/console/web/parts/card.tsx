// A card with a heading, and what stands beside the heading.
import type { ComponentChildren, ComponentProps, VNode } from "preact";

type CardProps = Omit<ComponentProps<"section">, "title"> & Readonly<{ title: string; side?: ComponentChildren }>;

export const Card = ({ title, side, class: look = "card flush", children, ...section }: CardProps): VNode => (
  <section class={look} {...section}>
    <header>
      <h2>{title}</h2>
      {side}
    </header>
    {children}
  </section>
);
