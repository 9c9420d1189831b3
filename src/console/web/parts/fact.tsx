// A row of a list of facts, whose value is `value` or what the element encloses.
import type { ComponentChildren, VNode } from "preact";

type FactProps = Readonly<{
  name: string;
  value?: ComponentChildren;
  children?: ComponentChildren;
  class?: string;
  title?: string | undefined;
}>;

export const Fact = ({ name, value, children, ...shown }: FactProps): VNode => (
  <>
    <dt>{name}</dt>
    <dd {...shown}>{value ?? children}</dd>
  </>
);
