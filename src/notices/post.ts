// One delivery of a notice: its body in the receiver's form, signed by the scheme of Standard Webhooks
// (https://www.standardwebhooks.com): HMAC-SHA-256 over id, time and body.
import { createHmac } from "node:crypto";
import { keyOfSecret, type WebhookConfig } from "../config/webhooks.ts";
import type { Notice } from "../core/notice.ts";
import type { Ms } from "../core/types.ts";

const webhookReplyMs = 10_000;
const webhookReachMs = 3_000;

/** Discord's limit, and enough for a chat. */
const textMaxLength = 1_900;

export async function bodyOf(
  { format }: Pick<WebhookConfig, "format">,
  { event, at, content }: Notice,
): Promise<string> {
  const { text, data } = await content();
  const short = text.length > textMaxLength ? `${text.slice(0, textMaxLength)}…` : text;
  switch (format) {
    case "json":
      return JSON.stringify({ type: event, timestamp: new Date(at).toISOString(), text, data });
    case "slack":
      return JSON.stringify({ text: slackText(short) });
    case "discord":
      // names in it, such as @everyone, mention no one
      return JSON.stringify({ content: short, allowed_mentions: { parse: [] } });
    default:
      return format satisfies never;
  }
}

/** Escapes Slack's markup for links and mentions, such as <!channel>. */
const slackText = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

function headersOf({ secret }: Pick<WebhookConfig, "secret">, id: string, now: Ms, body: string) {
  const seconds = String(Math.floor(now / 1000));
  const headers: Record<string, string> = {
    "content-type": "application/json",
    "user-agent": "tollgate",
    "webhook-id": id,
    "webhook-timestamp": seconds,
  };
  if (secret !== null) {
    const signature = createHmac("sha256", keyOfSecret(secret)!).update(`${id}.${seconds}.${body}`).digest("base64");
    headers["webhook-signature"] = `v1,${signature}`;
  }
  return headers;
}

/** Null where it was accepted; otherwise the reason, in words without the address. Never rejects. */
export async function postNotice(webhook: WebhookConfig, notice: Notice, now: Ms): Promise<string | null> {
  const body = await bodyOf(webhook, notice);
  const method = { method: "POST", headers: headersOf(webhook, notice.id, now, body), body };
  return answered(webhook, method, webhookReplyMs, (status) =>
    status >= 200 && status < 300
      ? null
      : `it answered ${status}${status >= 300 && status < 400 ? ", a redirect, which is not followed" : ""}`,
  );
}

/** Whether something answers there, without sending it anything: null, or the reason. Never rejects. */
export const reachWebhook = (webhook: WebhookConfig): Promise<string | null> =>
  answered(webhook, { method: "HEAD" }, webhookReachMs, () => null);

async function answered(
  { url }: WebhookConfig,
  init: RequestInit,
  timeoutMs: Ms,
  problemOf: (status: number) => string | null,
): Promise<string | null> {
  try {
    const reply = await fetch(url, { ...init, redirect: "manual", signal: AbortSignal.timeout(timeoutMs) });
    await reply.body?.cancel(); // the reply is not read
    return problemOf(reply.status);
  } catch (thrown) {
    const { code, name } = thrown as Error & { code?: unknown };
    if (name === "TimeoutError") return `it gave no answer within ${timeoutMs / 1000} seconds`;
    return `it cannot be reached: ${typeof code === "string" ? code : name}`;
  }
}
