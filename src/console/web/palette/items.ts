// What the palette leads to: pages, commands, chapters of the guide, models, keys, nodes, accounts and conversations.
import { accountPages, operatorPages } from "../pages.ts";
import { setTheme } from "../parts/theme-choice.tsx";
import type { IconName } from "../parts/icons.tsx";
import { toast } from "../parts/toasts.tsx";
import { get } from "../request.ts";
import { navigate } from "../route.ts";
import { account, operatorNumbers, session, signOut } from "../session.ts";
import { chapters } from "./chapters.ts";
import { readEntries } from "../pages/playground/conversation-store.ts";
import { owner } from "../pages/playground/owner.ts";

export type Item = Readonly<{
  /** Stays the same from one time to the next. */
  id: string;
  group: string;
  name: string;
  about: string;
  icon: IconName;
  /** Other words by which it is found. */
  words?: string;
  run: () => void;
}>;

const isOperator = (): boolean => account.value?.operator === true;

/** What is there at once. */
export function ownItems(): readonly Item[] {
  const pages = [...accountPages, ...(isOperator() ? operatorPages : [])].map(({ path, name, icon }): Item => ({
    id: `page ${path}`,
    group: "Pages",
    name: path === "/plan" && session.value?.plans.length === 1 ? "Balance" : name,
    about: path.startsWith("/operator") ? "Operator" : "",
    icon,
    run: () => navigate(path),
  }));
  const nodes = (operatorNumbers.value?.nodes ?? []).map(({ name, health }): Item => ({
    id: `node ${name}`,
    group: "Nodes",
    name,
    about: health,
    icon: "nodes",
    words: "node",
    run: () => navigate("/operator/nodes"),
  }));
  return [...commands(), ...(isOperator() ? nodeCommands() : []), ...pages, ...docs, ...nodes];
}

/** A node that is drained can be resumed, any other drained, which the page asks about. */
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
    command("system", "Theme of the system", "system", "appearance switch", () => setTheme("system")),
    command("out", "Sign out", "leave", "leave log out", () => {
      void signOut().catch((error: Error) => toast(error.message, "failed"));
    }),
  ];
}

const docs: readonly Item[] = [
  ...chapters.map(([id, name]) => [`/docs/guide/${id}`, name] as const),
  ["/docs", "API reference"] as const,
].map(([path, name]) => ({
  id: `docs ${path}`,
  group: "Documentation",
  name,
  about: "",
  icon: "audit",
  words: "docs guide help",
  run: () => location.assign(path),
}));

/** What is fetched when the palette opens. A part that cannot be had is left out: the page behind it says why. */
export const fetchedItems: readonly (() => Promise<readonly Item[]>)[] = [
  async () =>
    (await get("/models")).models.map(({ id, served, usable, coder }) => ({
      id: `model ${id}`,
      group: "Models",
      name: id,
      about: !usable ? "Not in your plan" : served ? (coder ? "Coder" : "Try it in the playground") : "No node",
      icon: "models",
      words: "model",
      run: () => navigate(`/playground?model=${encodeURIComponent(id)}`),
    })),
  async () =>
    (await get("/keys")).keys.map(({ id, name }) => ({
      id: `key ${id}`,
      group: "Keys",
      name,
      about: "API key",
      icon: "key",
      words: "key",
      run: () => navigate("/key"),
    })),
  async () => {
    const of = owner.value;
    return of === null
      ? []
      : (await readEntries(of)).map(({ id, title }) => ({
          id: `conversation ${id}`,
          group: "Conversations",
          name: title,
          about: "",
          icon: "playground" as const,
          words: "conversation chat",
          run: () => navigate(`/playground?c=${encodeURIComponent(id)}`),
        }));
  },
];

const accountsShown = 8;

/** Operators look for accounts on the server: there may be many. */
export async function accountItems(search: string): Promise<readonly Item[]> {
  if (!isOperator()) return [];
  const { accounts } = await get("/operator/accounts", { search, limit: accountsShown });
  return accounts.map(({ id, email, plan }) => accountItem(id, email, plan));
}

const accountItem = (id: number, email: string, plan: string): Item => ({
  id: `account ${id} ${email}`,
  group: "Accounts",
  name: email,
  about: plan,
  icon: "account",
  words: "account",
  run: () => navigate(`/operator/accounts?do=open:${id}`),
});

/** An account that was chosen before, by its id here; null for what is no account. */
export function rememberedAccount(id: string): Item | null {
  const [, number, email] = /^account (\d{1,15}) (\S+)$/.exec(id) ?? [];
  return number === undefined || email === undefined || !isOperator() ? null : accountItem(Number(number), email, "");
}
