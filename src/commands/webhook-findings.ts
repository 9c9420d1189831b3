// Looks whether something answers at the webhooks of the configuration, without telling them anything. Their addresses may
// be secrets: only the host is named.
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
  const told = events.length === noticeEvents.length ? "all events" : events.join(", ");
  const found = [ok(what, `${host} answers; ${format}, ${secret === null ? "not signed" : "signed"}, ${told}`)];
  if (secret === null && format === "json") {
    found.push(warning(what, "secret is missing: whoever knows its address can tell it things in our name"));
  }
  if (url.startsWith("http:") && !namesThisMachine(new URL(url).hostname)) {
    found.push(warning(what, "its address is not https: whoever is on the way can read the notices"));
  }
  return found;
}
