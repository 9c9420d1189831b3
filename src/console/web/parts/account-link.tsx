// The name of an account, which leads operators to its sheet.
import type { ComponentChildren, VNode } from "preact";

export const accountsPath = "/operator/accounts";
export const accountPath = (name: string): string => `${accountsPath}/${encodeURIComponent(name)}`;

type AccountLinkProps = Readonly<{ name: string; class?: string; label?: string; children?: ComponentChildren }>;

export const AccountLink = ({ name, label, children, ...link }: AccountLinkProps): VNode => (
  <a href={accountPath(name)} aria-label={label} {...link}>
    {children ?? name}
  </a>
);
