// Checks whether the configured webhooks answer, without sending anything. Their addresses may be secrets: only the host is
// shown.
import type { Config } from "../config/config.ts";
import { namesThisMachine } from "../core/this-machine.ts";
import { noticeEvents } from "../core/notice.ts";
import { reachWebhook } from "../notices/post.ts";
import { type Finding, ok, problem, warning } from "./finding.ts";

export const webhookFindings = async ({ webhooks }: Pick<Config, "webhooks">): Promise<readonly Finding[]> =>
  (await Promise.all(webhooks.map(findingsOf))).flat();

async function findingsOf(webhook: Config["webhooks"][number]): Promise<readonly Finding[]> {
  const { name, host, url, format, secret, events } = webhook;
  const what = `webhook ${name}`;
  const wrong = await reachWebhook(webhook);
  if (wrong !== null) return [problem(what, `${host}: ${wrong}`)];
  const sent = events.length === noticeEvents.length ? "all events" : events.join(", ");
  const found = [ok(what, `${host} answers; ${format}, ${secret === null ? "not signed" : "signed"}, ${sent}`)];
  if (secret === null && format === "json") {
    found.push(warning(what, "secret is missing: anyone who knows its address can forge notices"));
  }
  if (url.startsWith("http:") && !namesThisMachine(new URL(url).hostname)) {
    found.push(warning(what, "its address is not https: an attacker on the network can read the notices"));
  }
  return found;
}
