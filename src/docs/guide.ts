// The guide: chapters in Markdown, readable as files of the repository and served below /docs/guide.
import accounts from "./guide/accounts.md" with { type: "text" };
import clients from "./guide/clients.md" with { type: "text" };
import cluster from "./guide/cluster.md" with { type: "text" };
import configuration from "./guide/configuration.md" with { type: "text" };
import nodes from "./guide/nodes.md" with { type: "text" };
import operations from "./guide/operations.md" with { type: "text" };
import sample from "./guide/sample.toml" with { type: "text" };
import start from "./guide/start.md" with { type: "text" };
import team from "./guide/team.md" with { type: "text" };
import tools from "./guide/tools.md" with { type: "text" };

/** A chapter's address is /docs/guide/{id}, its file guide/{id}.md; the first line of its text is its title. */
export type Chapter = Readonly<{
  id: string;
  text: string;
  /** The model in its samples. */
  model?: string;
}>;

/** The server has no file to link to, so its page shows the sample. */
const sampleLink = /^.*\]\(sample\.toml\).*$/m;

/** In the order in which newcomers need them. */
export const chapters: readonly Chapter[] = [
  { id: "start", text: start },
  { id: "team", text: team, model: "qwen3:8b" },
  { id: "clients", text: clients },
  { id: "nodes", text: nodes },
  { id: "accounts", text: accounts },
  { id: "tools", text: tools },
  { id: "operations", text: operations },
  { id: "cluster", text: cluster },
  { id: "configuration", text: configuration.replace(sampleLink, (line) => `${line}\n\n\`\`\`toml\n${sample}\`\`\``) },
];

export const titleOf = ({ text }: Chapter): string => text.slice(2, text.indexOf("\n"));
