// tollgate webhooks test NAME: posts a notice to a webhook, from the running server or by itself.
import { addressesOf, loadConfig } from "../config/config.ts";
import { dataFolderOf } from "../config/config.ts";
import { systemClock } from "../core/clock.ts";
import { CommandError } from "../core/expected-error.ts";
import { postNotice } from "../notices/post.ts";
import { askRunningServer } from "../server/control-socket.ts";
import { noSuchWebhook, testNotice } from "../server/notice-watch.ts";
import { type Command, folderFlags, type Invocation, textFlag } from "./command.ts";
import { configFlags } from "./perform.ts";

const command: Command = {
  words: ["NAME"],
  flags: folderFlags,
  async run(invocation) {
    const { words, flags, environment } = invocation;
    const name = words[0]!;
    const folder = dataFolderOf({ data: textFlag(flags, "data") }, environment);
    const answered = await askRunningServer(folder, "webhooks test", { name }, () => {});
    const problem = answered === null ? await testHere(invocation, name) : (answered.result as string | null);
    if (flags["json"] === true) console.log(JSON.stringify({ name, sent: problem === null, problem }));
    else if (problem === null) console.log(`${name} took a notice.`);
    if (problem !== null && flags["json"] !== true) throw new CommandError(`the webhook ${name}: ${problem}`);
    return problem === null ? 0 : 1;
  },
};
export default command;

async function testHere({ flags, environment }: Invocation, name: string): Promise<string | null> {
  const config = await loadConfig(configFlags(flags), environment);
  const webhook = config.webhooks.find((each) => each.name === name);
  if (webhook === undefined) throw noSuchWebhook(name, config.webhooks);
  const now = systemClock.wall();
  const { baseUrl } = addressesOf(config, config.port);
  const gateway = config.databaseUrl === null ? null : config.gateway;
  return postNotice(webhook, testNotice(webhook, { baseUrl, gateway }, now), now);
}
