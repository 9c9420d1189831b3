// Every page of the console: its address, name and icon, and the file from which it is loaded when first shown.
import type { ComponentType } from "preact";
import type { IconName } from "./parts/icons.tsx";
import { inWords } from "./request.ts";
import { account, sells, session } from "./session.ts";
import { later, t, type TextKey } from "./texts.ts";

export type PageEntry = Readonly<{
  path: string;
  name: TextKey;
  icon: IconName;
  load: () => Promise<ComponentType>;
}>;

/** `component`: its name in the file. */
const page = <Name extends string>(
  path: string,
  name: TextKey,
  icon: IconName,
  file: () => Promise<Readonly<Record<Name, ComponentType>>>,
  component: Name,
): PageEntry => ({
  path,
  name,
  icon,
  load: async () => {
    if (!path.startsWith("/operator")) return (await later(file()))[component];
    // Operators' pages show what the server says, too.
    const [module] = await Promise.all([later(file(), "operators"), inWords("")]);
    return module[component];
  },
});

/** `name`: what stands above them in the menu, if anything. */
type PageGroup = Readonly<{ name: TextKey | null; pages: readonly PageEntry[] }>;

export const accountGroups: readonly PageGroup[] = [
  {
    name: null,
    pages: [
      page("/", "menu.overview", "overview", () => import("./pages/overview.tsx"), "OverviewPage"),
      page(
        "/playground",
        "menu.playground",
        "playground",
        () => import("./pages/playground/page.tsx"),
        "PlaygroundPage",
      ),
      page("/batch", "menu.batches", "batches", () => import("./pages/batches.tsx"), "BatchesPage"),
    ],
  },
  {
    name: "menu.group_use",
    pages: [
      page("/usage", "menu.usage", "usage", () => import("./pages/usage.tsx"), "UsagePage"),
      page("/reports", "menu.reports", "totals", () => import("./pages/reports.tsx"), "ReportsPage"),
      page("/plan", "menu.plan", "plan", () => import("./pages/plan.tsx"), "PlanPage"),
    ],
  },
  {
    name: "menu.group_access",
    pages: [
      page("/key", "menu.key", "key", () => import("./pages/key.tsx"), "KeyPage"),
      page("/team", "menu.team", "accounts", () => import("./pages/team.tsx"), "TeamPage"),
      page("/account", "menu.account", "account", () => import("./pages/account.tsx"), "AccountPage"),
    ],
  },
];
export const accountPages = accountGroups.flatMap(({ pages }) => pages);

export const operatorPages: readonly PageEntry[] = [
  page("/operator", "menu.activity", "activity", () => import("./pages/operator/activity.tsx"), "ActivityPage"),
  page("/operator/log", "menu.log", "log", () => import("./pages/operator/log.tsx"), "LogPage"),
  page(
    "/operator/accounts",
    "menu.accounts",
    "accounts",
    () => import("./pages/operator/accounts.tsx"),
    "AccountsPage",
  ),
  page("/operator/nodes", "menu.nodes", "nodes", () => import("./pages/operator/nodes.tsx"), "NodesPage"),
  page("/operator/models", "menu.models", "models", () => import("./pages/operator/models.tsx"), "ModelsPage"),
];
/** Needed less often. */
export const moreOperatorPages: readonly PageEntry[] = [
  page("/operator/line", "menu.line", "line", () => import("./pages/operator/line.tsx"), "LinePage"),
  page(
    "/operator/requests",
    "menu.requests",
    "requests",
    () => import("./pages/operator/requests.tsx"),
    "RequestsPage",
  ),
  page(
    "/operator/batches",
    "menu.all_batches",
    "batches",
    () => import("./pages/operator/batches.tsx"),
    "OperatorBatchesPage",
  ),
  page("/operator/config", "menu.config", "pencil", () => import("./pages/operator/config.tsx"), "ConfigPage"),
  page("/operator/server", "menu.server", "settings", () => import("./pages/operator/server.tsx"), "ServerPage"),
  page("/operator/audit", "menu.audit", "audit", () => import("./pages/operator/audit.tsx"), "AuditPage"),
];
export const allOperatorPages = [...operatorPages, ...moreOperatorPages];

/** Who is in no team has no page of it; operators see all teams. */
export const isShown = ({ path }: PageEntry): boolean =>
  path !== "/team" || account.value?.team === true || account.value?.operator === true;

/** With only one plan, there is nothing to choose on the plan page. */
export const nameOf = ({ path, name }: PageEntry): string =>
  t(path === "/plan" && session.value?.plans.length === 1 ? (sells.value ? "menu.balance" : "menu.models") : name);

/** Programs lead there, and no menu. */
const devicePage = page("/device", "menu.device", "key", () => import("./pages/device.tsx"), "DevicePage");

/** Lists, of which each row has a page of its own: `/operator/nodes/gpu-a`. */
const lists = ["/operator/accounts", "/operator/nodes", "/operator/models"];

/** `address`: a path, perhaps with a query. */
export function pageAt(address: string): PageEntry | undefined {
  const path = pathOf(address.split("?", 1)[0]!);
  const list = lists.find((list) => path.startsWith(`${list}/`)) ?? path;
  return [...accountPages, devicePage, ...allOperatorPages].find((page) => page.path === list);
}

/** Bookmarks have addresses that pages had before. */
const pathOf = (path: string): string => (path === "/operator/activity" ? "/operator" : path);
