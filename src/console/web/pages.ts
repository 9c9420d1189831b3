// Every page of the console: its address, name and icon, and the file from which it is loaded when first shown.
import type { ComponentType } from "preact";
import type { IconName } from "./parts/icons.tsx";
import { account, sells, session } from "./session.ts";

export type PageEntry = Readonly<{
  path: string;
  name: string;
  icon: IconName;
  load: () => Promise<ComponentType>;
}>;

/** `component`: its name in the file. */
const page = <Name extends string>(
  path: string,
  name: string,
  icon: IconName,
  file: () => Promise<Readonly<Record<Name, ComponentType>>>,
  component: Name,
): PageEntry => ({ path, name, icon, load: async () => (await file())[component] });

/** `name`: what stands above them in the menu, if anything. */
type PageGroup = Readonly<{ name: string | null; pages: readonly PageEntry[] }>;

export const accountGroups: readonly PageGroup[] = [
  {
    name: null,
    pages: [
      page("/", "Overview", "overview", () => import("./pages/overview.tsx"), "OverviewPage"),
      page("/playground", "Playground", "playground", () => import("./pages/playground/page.tsx"), "PlaygroundPage"),
      page("/batch", "Batches", "batches", () => import("./pages/batches.tsx"), "BatchesPage"),
    ],
  },
  {
    name: "Use",
    pages: [
      page("/usage", "Usage", "usage", () => import("./pages/usage.tsx"), "UsagePage"),
      page("/reports", "Reports", "totals", () => import("./pages/reports.tsx"), "ReportsPage"),
      page("/plan", "Plan", "plan", () => import("./pages/plan.tsx"), "PlanPage"),
    ],
  },
  {
    name: "Access",
    pages: [
      page("/key", "API key", "key", () => import("./pages/key.tsx"), "KeyPage"),
      page("/team", "Team", "accounts", () => import("./pages/team.tsx"), "TeamPage"),
      page("/account", "Account", "account", () => import("./pages/account.tsx"), "AccountPage"),
    ],
  },
];
export const accountPages = accountGroups.flatMap(({ pages }) => pages);

export const operatorPages: readonly PageEntry[] = [
  page("/operator", "Activity", "activity", () => import("./pages/operator/activity.tsx"), "ActivityPage"),
  page("/operator/log", "Request log", "log", () => import("./pages/operator/log.tsx"), "LogPage"),
  page("/operator/accounts", "Accounts", "accounts", () => import("./pages/operator/accounts.tsx"), "AccountsPage"),
  page("/operator/nodes", "Nodes", "nodes", () => import("./pages/operator/nodes.tsx"), "NodesPage"),
  page("/operator/models", "Models", "models", () => import("./pages/operator/models.tsx"), "ModelsPage"),
];
/** Needed less often. */
export const moreOperatorPages: readonly PageEntry[] = [
  page("/operator/line", "Line", "line", () => import("./pages/operator/line.tsx"), "LinePage"),
  page("/operator/requests", "Requests", "requests", () => import("./pages/operator/requests.tsx"), "RequestsPage"),
  page(
    "/operator/batches",
    "All batches",
    "batches",
    () => import("./pages/operator/batches.tsx"),
    "OperatorBatchesPage",
  ),
  page("/operator/config", "Configuration", "pencil", () => import("./pages/operator/config.tsx"), "ConfigPage"),
  page("/operator/server", "Server", "settings", () => import("./pages/operator/server.tsx"), "ServerPage"),
  page("/operator/audit", "Audit log", "audit", () => import("./pages/operator/audit.tsx"), "AuditPage"),
];
export const allOperatorPages = [...operatorPages, ...moreOperatorPages];

/** Who is in no team has no page of it; operators see all teams. */
export const isShown = ({ path }: PageEntry): boolean =>
  path !== "/team" || account.value?.team === true || account.value?.operator === true;

/** With only one plan, there is nothing to choose on the plan page. */
export const nameOf = ({ path, name }: PageEntry): string =>
  path === "/plan" && session.value?.plans.length === 1 ? (sells.value ? "Balance" : "Models") : name;

/** Programs lead there, and no menu. */
const devicePage = page("/device", "Sign in a program", "key", () => import("./pages/device.tsx"), "DevicePage");

/** `address`: a path, perhaps with a query. */
export const pageAt = (address: string): PageEntry | undefined =>
  [...accountPages, devicePage, ...allOperatorPages].find(({ path }) => path === pathOf(address.split("?", 1)[0]!));

/** Bookmarks have addresses that pages had before. */
const pathOf = (path: string): string => (path === "/operator/activity" ? "/operator" : path);
