// tollgate webhooks test: through the running server, or directly.
import { addressesOf, loadConfig } from "../config/config.ts";
import { systemClock } from "../core/clock.ts";
import { CommandError } from "../core/expected-error.ts";
import { postNotice } from "../notices/post.ts";
import { testWebhook } from "../office/verbs/server.ts";
import { noSuchWebhook, testNotice } from "../server/notice-watch.ts";
import type { Invocation } from "./command.ts";
import { askedServer, configFlags } from "./perform.ts";
import { inputOf, tell } from "./verb-input.ts";

export default async function postTestNotice(invocation: Invocation): Promise<number> {
  const wanted = inputOf(testWebhook, invocation);
  const { name } = wanted;
  const answered = await askedServer(invocation, testWebhook.name, wanted);
  const tested = answered === null ? await testHere(invocation, name) : (answered.result as Tested);
  if (tested.problem !== null && invocation.flags["json"] !== true) {
    throw new CommandError(testWebhook.print(tested, wanted));
  }
  tell(invocation, testWebhook, wanted, tested);
  return tested.sent ? 0 : 1;
}

type Tested = Parameters<typeof testWebhook.print>[0];

async function testHere({ flags, environment }: Invocation, name: string): Promise<Tested> {
  const config = await loadConfig(configFlags(flags), environment);
  const webhook = config.webhooks.find((each) => each.name === name);
  if (webhook === undefined) throw noSuchWebhook(name, config.webhooks);
  const now = systemClock.wall();
  const { baseUrl } = addressesOf(config, config.port);
  const gateway = config.databaseUrl === null ? null : config.gateway;
  const problem = await postNotice(webhook, testNotice(webhook, { baseUrl, gateway }, now), now);
  return { name, sent: problem === null, problem };
}
