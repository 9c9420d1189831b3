// Credit paid through Stripe: a Checkout page and a signed webhook. The library loads only if a key is configured.
import type Stripe from "stripe";
import { centsOf, type PaymentNotice, type Order, type PaymentProvider } from "./payment-provider.ts";

type StripeOptions = Readonly<{
  secretKey: string;
  webhookSecret: string;
  /** Where Stripe's API is; null: at Stripe. */
  url: string | null;
}>;

export async function openStripe({ secretKey, webhookSecret, url }: StripeOptions): Promise<PaymentProvider> {
  const { default: StripeClient } = await import("stripe");
  const stripe = new StripeClient(secretKey, { telemetry: false, maxNetworkRetries: 2, ...addressOf(url) });

  return {
    name: "stripe",

    async checkout({ account, email, tokens, cents, paidUrl, cancelledUrl }: Order) {
      const session = await stripe.checkout.sessions.create({
        mode: "payment",
        client_reference_id: String(account),
        customer_email: email,
        line_items: [
          {
            quantity: 1,
            price_data: {
              currency: "usd",
              unit_amount: cents,
              product_data: { name: `${tokens.toLocaleString("en-US")} tokens` },
            },
          },
        ],
        metadata: { account: String(account), tokens: String(tokens) },
        success_url: paidUrl,
        cancel_url: cancelledUrl,
      });
      if (session.url === null) throw new Error("Stripe gave no address for the payment");
      return { url: session.url };
    },

    async notice(body, headers) {
      let event: Stripe.Event;
      try {
        event = await stripe.webhooks.constructEventAsync(body, headers.get("stripe-signature") ?? "", webhookSecret);
      } catch (error) {
        if (error instanceof StripeClient.errors.StripeSignatureVerificationError) return { kind: "forged" };
        throw error;
      }
      switch (event.type) {
        case "checkout.session.completed":
        case "checkout.session.async_payment_succeeded":
          return noticeOf(event.data.object, event.created);
        default:
          return { kind: "other" };
      }
    },
  };
}

/** Delayed payments complete their session before they are made, and are reported again when they are. */
function noticeOf(session: Stripe.Checkout.Session, createdSeconds: number): PaymentNotice {
  if (session.payment_status !== "paid") return { kind: "other" };
  const account = wholeOf(session.metadata?.["account"]);
  const tokens = wholeOf(session.metadata?.["tokens"]);
  // A session that `checkout` above did not create is for something else.
  if (account === null || tokens === null) return { kind: "other" };
  if (session.currency !== "usd" || session.amount_subtotal !== centsOf(tokens)) {
    return { kind: "unusable", reason: `${session.id}: ${session.amount_subtotal} ${session.currency} paid` };
  }
  const { payment_intent: intent } = session;
  const paymentId = typeof intent === "string" ? intent : (intent?.id ?? session.id);
  const payment = { id: `stripe:${paymentId}`, account, tokens, paidAt: createdSeconds * 1000 };
  return { kind: "paid", payment };
}

const wholeOf = (text: string | undefined): number | null =>
  text !== undefined && /^[1-9][0-9]{0,14}$/.test(text) ? Number(text) : null;

function addressOf(url: string | null): Pick<Stripe.StripeConfig, "host" | "port" | "protocol"> {
  if (url === null) return {};
  const { protocol, hostname, port } = new URL(url);
  const isHttps = protocol === "https:";
  return { host: hostname, port: Number(port) || (isHttps ? 443 : 80), protocol: isHttps ? "https" : "http" };
}
