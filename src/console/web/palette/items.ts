// The items of the palette: pages, commands, chapters of the guide, models, keys, nodes, accounts and conversations.
import { accountPages, nameOf, allOperatorPages } from "../pages.ts";
import { setTheme } from "../parts/theme-choice.tsx";
import type { IconName } from "../parts/icons.tsx";
import { toast } from "../parts/toasts.tsx";
import { type Language, languages } from "../language.ts";
import { get } from "../request.ts";
import { accountPath } from "../parts/account-link.tsx";
import { navigate } from "../route.ts";
import { account, keepLanguage, operatorNumbers, signOut } from "../session.ts";
import { chapters } from "./chapters.ts";
import { readEntries } from "../pages/playground/conversation-store.ts";
import { owner } from "../pages/playground/owner.ts";
import { t } from "../texts.ts";

/** Each has its name among the texts. */
export type ItemGroup =
  | "accounts"
  | "commands"
  | "conversations"
  | "docs"
  | "keys"
  | "models"
  | "node_commands"
  | "nodes"
  | "pages"
  | "recent";

export type Item = Readonly<{
  /** Stable, so that recent choices can be remembered. */
  id: string;
  group: ItemGroup;
  name: string;
  about: string;
  icon: IconName;
  /** Further words that find it. */
  words?: string;
  run: () => void;
}>;

/** Items of one kind, apart from pages and commands. */
const itemOf =
  (kind: string, group: ItemGroup, icon: IconName, words: string) =>
  (id: string | number, name: string, about: string, run: () => void): Item => ({
    id: `${kind} ${id}`,
    group,
    name,
    about,
    icon,
    words,
    run,
  });
const nodeItem = itemOf("node", "nodes", "nodes", "node");
const docsItem = itemOf("docs", "docs", "audit", "docs guide help");
const modelItem = itemOf("model", "models", "models", "model");
const keyItem = itemOf("key", "keys", "key", "key");
const conversationItem = itemOf("conversation", "conversations", "playground", "conversation chat");

const isOperator = (): boolean => account.value?.operator === true;

export function ownItems(): readonly Item[] {
  const pages = [...accountPages, ...(isOperator() ? allOperatorPages : [])].map((page): Item => ({
    id: `page ${page.path}`,
    group: "pages",
    name: nameOf(page),
    about: page.path.startsWith("/operator") ? t("shell.operator") : "",
    icon: page.icon,
    run: () => navigate(page.path),
  }));
  const nodes = (operatorNumbers.value?.nodes ?? []).map(({ name, health }) =>
    nodeItem(name, name, health, () => navigate(`/operator/nodes/${encodeURIComponent(name)}`)),
  );
  return [...commands(), ...(isOperator() ? nodeCommands() : []), ...pages, ...docs(), ...nodes];
}

/** Resumes a drained node or drains another one; the page offers to take it back. */
const nodeCommands = (): readonly Item[] =>
  (operatorNumbers.value?.nodes ?? []).map(({ name, drained_since: drainedSince }) => {
    const act = drainedSince === null ? "drain" : "resume";
    return {
      id: `command ${act} ${name}`,
      group: "node_commands",
      name: t(drainedSince === null ? "palette.drain" : "palette.resume", { name }),
      about: t("shell.operator"),
      icon: "nodes",
      words: drainedSince === null ? "drain node stop maintenance" : "resume node undrain start",
      run: () => navigate(`/operator/nodes?do=${act}:${encodeURIComponent(name)}`),
    };
  });

function commands(): readonly Item[] {
  const command = (id: string, name: string, icon: IconName, words: string, run: () => void): Item => ({
    id: `command ${id}`,
    group: "commands",
    name,
    about: "",
    icon,
    words,
    run,
  });
  return [
    command("chat", t("palette.chat"), "playground", "chat ask", () => navigate("/playground?new")),
    command("key", t("palette.key"), "key", "make token", () => navigate("/key?do=new")),
    ...(isOperator()
      ? [
          command("account", t("palette.account"), "plus", "make user", () => navigate("/operator/accounts?do=new")),
          command("invite", t("palette.invite"), "accounts", "invitation link", () =>
            navigate("/operator/accounts?do=invite"),
          ),
        ]
      : []),
    command("light", t("palette.light"), "sun", "appearance switch", () => setTheme("light")),
    command("dark", t("palette.dark"), "moon", "appearance switch", () => setTheme("dark")),
    command("system", t("palette.system"), "system", "appearance switch", () => setTheme("system")),
    ...Object.entries(languages).map(([code, { name }]) =>
      command(`language ${code}`, t("palette.language", { name }), "globe", "language sprache 语言", () =>
        keepLanguage(code as Language, true),
      ),
    ),
    command("out", t("common.sign_out"), "leave", "leave log out", () => {
      void signOut().catch((error: Error) => toast(error.message, "failed"));
    }),
  ];
}

/** The guide is in English. */
const docs = (): readonly Item[] =>
  [
    ...chapters.map(([id, name]) => [`/docs/guide/${id}`, name] as const),
    ["/docs", t("palette.reference")] as const,
  ].map(([path, name]) => docsItem(path, name, "", () => location.assign(path)));

/** Items that are fetched when the palette opens. Failed parts are left out; the pages behind them say why. */
export const fetchedItems: readonly (() => Promise<readonly Item[]>)[] = [
  async () =>
    (await get("/models")).models.map(({ id, served, usable, coder }) => {
      const about = t(
        !usable ? "palette.not_in_plan" : !served ? "palette.no_node" : coder ? "palette.coder" : "palette.try",
      );
      return modelItem(id, id, about, () => navigate(`/playground?model=${encodeURIComponent(id)}`));
    }),
  async () => (await get("/keys")).keys.map(({ id, name }) => keyItem(id, name, t("menu.key"), () => navigate("/key"))),
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
  itemOf("account", "accounts", "account", "account")(`${id} ${email}`, email, plan, () =>
    navigate(accountPath(email)),
  );

/** A recently chosen account, by its item id; null if the id is not of an account. */
export function rememberedAccount(id: string): Item | null {
  const [, number, email] = /^account (\d{1,15}) (\S+)$/.exec(id) ?? [];
  return number === undefined || email === undefined || !isOperator() ? null : accountItem(Number(number), email, "");
}
