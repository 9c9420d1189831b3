// The items of the palette: pages, commands, chapters of the guide, models, keys, nodes, accounts and conversations.
import { accountPages, nameOf, allOperatorPages } from "../pages.ts";
import { setTheme } from "../parts/theme-choice.tsx";
import type { IconName } from "../parts/icons.tsx";
import { toast } from "../parts/toasts.tsx";
import { get } from "../request.ts";
import { navigate } from "../route.ts";
import { account, operatorNumbers, signOut } from "../session.ts";
import { chapters } from "./chapters.ts";
import { readEntries } from "../pages/playground/conversation-store.ts";
import { owner } from "../pages/playground/owner.ts";

export type Item = Readonly<{
  /** Stable, so that recent choices can be remembered. */
  id: string;
  group: string;
  name: string;
  about: string;
  icon: IconName;
  /** Further words that find it. */
  words?: string;
  run: () => void;
}>;

/** Items of one kind, apart from pages and commands. */
const itemOf =
  (kind: string, group: string, icon: IconName, words: string) =>
  (id: string | number, name: string, about: string, run: () => void): Item => ({
    id: `${kind} ${id}`,
    group,
    name,
    about,
    icon,
    words,
    run,
  });
const nodeItem = itemOf("node", "Nodes", "nodes", "node");
const docsItem = itemOf("docs", "Documentation", "audit", "docs guide help");
const modelItem = itemOf("model", "Models", "models", "model");
const keyItem = itemOf("key", "Keys", "key", "key");
const conversationItem = itemOf("conversation", "Conversations", "playground", "conversation chat");

const isOperator = (): boolean => account.value?.operator === true;

export function ownItems(): readonly Item[] {
  const pages = [...accountPages, ...(isOperator() ? allOperatorPages : [])].map((page): Item => ({
    id: `page ${page.path}`,
    group: "Pages",
    name: nameOf(page),
    about: page.path.startsWith("/operator") ? "Operator" : "",
    icon: page.icon,
    run: () => navigate(page.path),
  }));
  const nodes = (operatorNumbers.value?.nodes ?? []).map(({ name, health }) =>
    nodeItem(name, name, health, () => navigate(`/operator/nodes/${encodeURIComponent(name)}`)),
  );
  return [...commands(), ...(isOperator() ? nodeCommands() : []), ...pages, ...docs, ...nodes];
}

/** Resumes a drained node or drains another one; the page offers to take it back. */
const nodeCommands = (): readonly Item[] =>
  (operatorNumbers.value?.nodes ?? []).map(({ name, drained_since: drainedSince }) => {
    const act = drainedSince === null ? "drain" : "resume";
    return {
      id: `command ${act} ${name}`,
      group: "Node commands",
      name: `${drainedSince === null ? "Drain" : "Resume"} ${name}`,
      about: "Operator",
      icon: "nodes",
      words: drainedSince === null ? "drain node stop maintenance" : "resume node undrain start",
      run: () => navigate(`/operator/nodes?do=${act}:${encodeURIComponent(name)}`),
    };
  });

function commands(): readonly Item[] {
  const command = (id: string, name: string, icon: IconName, words: string, run: () => void): Item => ({
    id: `command ${id}`,
    group: "Commands",
    name,
    about: "",
    icon,
    words,
    run,
  });
  return [
    command("chat", "New conversation", "playground", "chat ask", () => navigate("/playground?new")),
    command("key", "New API key", "key", "make token", () => navigate("/key?do=new")),
    ...(isOperator()
      ? [
          command("account", "New account", "plus", "make user", () => navigate("/operator/accounts?do=new")),
          command("invite", "Invite somebody", "accounts", "invitation link", () =>
            navigate("/operator/accounts?do=invite"),
          ),
        ]
      : []),
    command("light", "Light theme", "sun", "appearance switch", () => setTheme("light")),
    command("dark", "Dark theme", "moon", "appearance switch", () => setTheme("dark")),
    command("system", "System theme", "system", "appearance switch", () => setTheme("system")),
    command("out", "Sign out", "leave", "leave log out", () => {
      void signOut().catch((error: Error) => toast(error.message, "failed"));
    }),
  ];
}

const docs: readonly Item[] = [
  ...chapters.map(([id, name]) => [`/docs/guide/${id}`, name] as const),
  ["/docs", "API reference"] as const,
].map(([path, name]) => docsItem(path, name, "", () => location.assign(path)));

/** Items that are fetched when the palette opens. Failed parts are left out; the pages behind them say why. */
export const fetchedItems: readonly (() => Promise<readonly Item[]>)[] = [
  async () =>
    (await get("/models")).models.map(({ id, served, usable, coder }) => {
      const about = !usable ? "Not in your plan" : served ? (coder ? "Coder" : "Try it in the playground") : "No node";
      return modelItem(id, id, about, () => navigate(`/playground?model=${encodeURIComponent(id)}`));
    }),
  async () => (await get("/keys")).keys.map(({ id, name }) => keyItem(id, name, "API key", () => navigate("/key"))),
  async () =>
    (owner.value === null ? [] : await readEntries(owner.value)).map(({ id, title }) =>
      conversationItem(id, title, "", () => navigate(`/playground?c=${encodeURIComponent(id)}`)),
    ),
];

const accountsShown = 8;

/** Operators search accounts on the server, since there may be many. */
export async function accountItems(search: string): Promise<readonly Item[]> {
  if (!isOperator()) return [];
  const { accounts } = await get("/operator/accounts", { search, limit: accountsShown });
  return accounts.map(({ id, email, plan }) => accountItem(id, email, plan));
}

const accountItem = (id: number, email: string, plan: string): Item =>
  itemOf("account", "Accounts", "account", "account")(`${id} ${email}`, email, plan, () =>
    navigate(`/operator/accounts?do=open:${id}`),
  );

/** A recently chosen account, by its item id; null if the id is not of an account. */
export function rememberedAccount(id: string): Item | null {
  const [, number, email] = /^account (\d{1,15}) (\S+)$/.exec(id) ?? [];
  return number === undefined || email === undefined || !isOperator() ? null : accountItem(Number(number), email, "");
}
