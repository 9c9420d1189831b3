// tollgate doctor: looks at what a server stands on, beside a running one or before the first start: configuration,
// nodes, the data folder and its disk, the database, open files and the clock.
import { readFileSync, statSync } from "node:fs";
import { systemClock } from "../clock.ts";
import { checkModelIds, type Config, type ConfigFlags, dataFolderOf, type Environment, loadConfig } from "../config.ts";
import { inspectNode } from "../nodes/inspect.ts";
import { type Command, folderFlags, textFlag } from "./command.ts";
import { askRunningServer } from "./control-socket.ts";
import { configFindings } from "./doctor-config.ts";
import { folderFindings } from "./doctor-folder.ts";
import { clockFinding, fileLimitFinding } from "./doctor-machine.ts";
import { isExpected } from "./expected-error.ts";
import { type Finding, findingLine, ok, problem, warning } from "./finding.ts";
import { catalogOf, configFlags } from "./perform.ts";

const command: Command = {
  words: [],
  flags: { ...folderFlags, node: { type: "string", multiple: true } },
  async run({ flags, environment }) {
    const isJson = flags["json"] === true;
    const findings: Finding[] = [];
    const tell = (found: readonly Finding[]): void => {
      findings.push(...found);
      if (!isJson) for (const finding of found) console.log(findingLine(finding));
    };
    const node = flags["node"] as readonly string[] | undefined;
    const dataFolder = dataFolderOf({ data: textFlag(flags, "data") }, environment);
    tell(await configurationFindings({ ...configFlags(flags), node }, environment));
    tell(await serverFindings(dataFolder));
    const folder = await folderFindings(dataFolder, (line) => console.error(line));
    tell(folder.findings);
    tell([fileLimitFinding(), clockFinding(dataFolder, folder.newestLineAt, systemClock.wall())]);
    const isWell = findings.every(({ level }) => level !== "problem");
    if (isJson) console.log(JSON.stringify({ ok: isWell, findings }));
    return isWell ? 0 : 1;
  },
};
export default command;

/** The configuration and its nodes; the rest is looked at also where it is wrong. */
async function configurationFindings(flags: ConfigFlags, environment: Environment): Promise<readonly Finding[]> {
  let config: Config;
  try {
    config = await loadConfig(flags, environment);
    checkModelIds(config, await catalogOf(config.catalogFile));
  } catch (error) {
    if (!isExpected(error)) throw error;
    return (error as Error).message.split("\n").map((line) => problem("configuration", line));
  }
  const { file, nodes } = config;
  const text = file === null ? "" : readFileSync(file, "utf8");
  const mode = file === null ? 0 : statSync(file).mode;
  const named = nodes.filter(({ managed }) => managed === undefined); // serve itself starts the others
  return [...configFindings(config, text, mode), ...(await Promise.all(named.map(nodeFinding)))];
}

async function nodeFinding(node: Config["nodes"][number]): Promise<Finding> {
  const { name, engine, problem: wrong } = await inspectNode(node, systemClock);
  const what = `node ${name}`;
  return wrong === null ? ok(what, `${engine}, ${node.slots} slots`) : problem(what, wrong);
}

async function serverFindings(dataFolder: string): Promise<readonly Finding[]> {
  const answered = await askRunningServer(dataFolder, "notices", {}, () => {});
  if (answered === null) return [ok("server", "none runs on the data folder")];
  const notices = answered.result as readonly string[];
  return [ok("server", "runs on the data folder and answers"), ...notices.map((notice) => warning("server", notice))];
}
