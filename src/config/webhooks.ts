// [[webhooks]]: addresses that get notices for operators.
import { noticeEvents, type WebhookFormat, webhookFormats } from "../core/notice.ts";
import { listOf, oneOf, textLike, webAddress } from "./kinds.ts";
import { key, required, secret, table } from "./rows.ts";

/** Length of the signing secret; Standard Webhooks takes no other. */
const webhookSecretMinBytes = 24;
const webhookSecretMaxBytes = 64;

export type WebhookConfig = Readonly<ReturnType<typeof webhookTable.read>>;

export const webhookTable = table(
  {
    name: required(
      "name",
      textLike("^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", "a name of up to 64 letters, digits, dots and dashes"),
      "In the console, the log and the metrics.",
    ),
    /** A secret: anyone who knows the address of a chat's webhook may write there. */
    url: secret("url", {
      about: "Where notices are posted. Private addresses are allowed; redirects are not followed.",
      aboutVariable: "Variable that holds the address. That of a chat is a secret.",
    }),
    /** Null: it is not signed. */
    secret: secret("secret", {
      about: "Signs each notice by Standard Webhooks: `whsec_` and 24 to 64 bytes in base64.",
      shown: "not signed",
    }),
    format: key("format", oneOf(webhookFormats), {
      about: "`slack` is for Mattermost and Rocket.Chat, too.",
      otherwise: "json" as WebhookFormat,
    }),
    events: key("events", listOf(oneOf(noticeEvents), 'a list of events such as "node.down"', 1), {
      about: `Events that it gets: ${noticeEvents.map((event) => `\`${event}\``).join(", ")}.`,
      otherwise: noticeEvents,
      shown: "all",
    }),
  },
  ({ url, secret: signing, ...webhook }, place, given) => {
    const key = "url" in given ? "url" : "url_env";
    const parsed = url === null ? null : URL.parse(url);
    if (!("url" in given || "url_env" in given)) place.at("url").fault("is missing: a webhook needs url or url_env");
    // Never with what it is: it is a secret.
    else if (url !== null && (parsed === null || !/^https?:$/.test(parsed.protocol) || parsed.username !== "")) {
      place.at(key).fault(`must be ${webAddress} without user`);
    }
    if (signing !== null && keyOfSecret(signing) === null) {
      const sizes = `${webhookSecretMinBytes} to ${webhookSecretMaxBytes}`;
      place
        .at("secret" in given ? "secret" : "secret_env")
        .fault(`must be whsec_ and ${sizes} bytes in base64, as of: echo "whsec_$(openssl rand -base64 32)"`);
    }
    return { ...webhook, url: url ?? "", secret: signing, host: parsed?.host ?? "" };
  },
);

/** The bytes that sign; null where it is no such secret. */
export function keyOfSecret(text: string): Uint8Array | null {
  const base64 = text.startsWith("whsec_") ? text.slice("whsec_".length) : text;
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(base64) || base64.length > 200) return null;
  const bytes = Buffer.from(base64, "base64");
  return bytes.length >= webhookSecretMinBytes && bytes.length <= webhookSecretMaxBytes ? bytes : null;
}
