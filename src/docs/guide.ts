// The guide: chapters in Markdown, read as files of the repository and shown by the running server below /docs/guide.
import accounts from "./guide/accounts.md" with { type: "text" };
import clients from "./guide/clients.md" with { type: "text" };
import configuration from "./guide/configuration.md" with { type: "text" };
import nodes from "./guide/nodes.md" with { type: "text" };
import operations from "./guide/operations.md" with { type: "text" };
import start from "./guide/start.md" with { type: "text" };
import tools from "./guide/tools.md" with { type: "text" };

/** A chapter's address is /docs/guide/{id}, its file guide/{id}.md; the first line of its text is its title. */
export type Chapter = Readonly<{ id: string; text: string }>;

/** In the order in which somebody new needs them. */
export const chapters: readonly Chapter[] = [
  { id: "start", text: start },
  { id: "clients", text: clients },
  { id: "nodes", text: nodes },
  { id: "accounts", text: accounts },
  { id: "tools", text: tools },
  { id: "operations", text: operations },
  { id: "configuration", text: configuration },
];

export const titleOf = ({ text }: Chapter): string => text.slice(2, text.indexOf("\n"));
