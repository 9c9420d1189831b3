// Every page of the console: its address, name and icon, and the file from which it is loaded when first shown.
import type { ComponentType } from "preact";
import type { IconName } from "./parts/icons.tsx";
import { sells, session } from "./session.ts";

export type PageEntry = Readonly<{
  path: string;
  name: string;
  icon: IconName;
  load: () => Promise<ComponentType>;
}>;

const lazy = <Name extends string>(
  file: () => Promise<Readonly<Record<Name, ComponentType>>>,
  name: Name,
): (() => Promise<ComponentType>) => {
  return async () => (await file())[name];
};

export const accountPages: readonly PageEntry[] = [
  { path: "/", name: "Overview", icon: "overview", load: lazy(() => import("./pages/overview.tsx"), "OverviewPage") },
  {
    path: "/playground",
    name: "Playground",
    icon: "playground",
    load: lazy(() => import("./pages/playground/page.tsx"), "PlaygroundPage"),
  },
  { path: "/key", name: "API key", icon: "key", load: lazy(() => import("./pages/key.tsx"), "KeyPage") },
  { path: "/usage", name: "Usage", icon: "usage", load: lazy(() => import("./pages/usage.tsx"), "UsagePage") },
  { path: "/plan", name: "Plan", icon: "plan", load: lazy(() => import("./pages/plan.tsx"), "PlanPage") },
  {
    path: "/account",
    name: "Account",
    icon: "account",
    load: lazy(() => import("./pages/account.tsx"), "AccountPage"),
  },
];

export const operatorPages: readonly PageEntry[] = [
  {
    path: "/operator",
    name: "Totals",
    icon: "totals",
    load: lazy(() => import("./pages/operator/totals.tsx"), "TotalsPage"),
  },
  {
    path: "/operator/activity",
    name: "Activity",
    icon: "activity",
    load: lazy(() => import("./pages/operator/activity.tsx"), "ActivityPage"),
  },
  {
    path: "/operator/log",
    name: "Request log",
    icon: "log",
    load: lazy(() => import("./pages/operator/log.tsx"), "LogPage"),
  },
  {
    path: "/operator/accounts",
    name: "Accounts",
    icon: "accounts",
    load: lazy(() => import("./pages/operator/accounts.tsx"), "AccountsPage"),
  },
  {
    path: "/operator/requests",
    name: "Requests",
    icon: "requests",
    load: lazy(() => import("./pages/operator/requests.tsx"), "RequestsPage"),
  },
  {
    path: "/operator/line",
    name: "Line",
    icon: "line",
    load: lazy(() => import("./pages/operator/line.tsx"), "LinePage"),
  },
  {
    path: "/operator/nodes",
    name: "Nodes",
    icon: "nodes",
    load: lazy(() => import("./pages/operator/nodes.tsx"), "NodesPage"),
  },
  {
    path: "/operator/models",
    name: "Models",
    icon: "models",
    load: lazy(() => import("./pages/operator/models.tsx"), "ModelsPage"),
  },
  {
    path: "/operator/server",
    name: "Server",
    icon: "settings",
    load: lazy(() => import("./pages/operator/server.tsx"), "ServerPage"),
  },
  {
    path: "/operator/audit",
    name: "Audit log",
    icon: "audit",
    load: lazy(() => import("./pages/operator/audit.tsx"), "AuditPage"),
  },
];

/** With only one plan, there is nothing to choose on the plan page. */
export const nameOf = ({ path, name }: PageEntry): string =>
  path === "/plan" && session.value?.plans.length === 1 ? (sells.value ? "Balance" : "Models") : name;

export const pageAt = (path: string): PageEntry | undefined =>
  [...accountPages, ...operatorPages].find((page) => page.path === path);
