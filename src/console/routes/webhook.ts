// The payment provider's webhook. A call is authenticated by its signature alone. The provider repeats a call until it
// succeeds, so a call that cannot be handled now must fail.
import { StoreUnavailable } from "../../core/types.ts";
import { readBody } from "../body.ts";
import type { ConsoleParts } from "../parts.ts";
import type { PaymentProvider } from "../payment-provider.ts";
import { failureReply, jsonReply } from "../reply.ts";
import { fail } from "./route.ts";

const webhookBodyMaxBytes = 1024 * 1024;

type Parts = Pick<ConsoleParts, "office" | "log">;

export async function webhookReply(parts: Parts, provider: PaymentProvider, request: Request): Promise<Response> {
  const body = await readBody(request, webhookBodyMaxBytes);
  if (body === null) return failureReply(fail("invalid_request", "The body is too large."));
  try {
    return await credit(parts, provider, body, request.headers);
  } catch (thrown) {
    parts.log("error", "a payment could not be credited; the provider will send it again", { error: String(thrown) });
    const isDisk = thrown instanceof StoreUnavailable;
    return failureReply(isDisk ? fail("unavailable", "Try again.") : fail("internal", "Try again."));
  }
}

async function credit(
  { office, log }: Parts,
  provider: PaymentProvider,
  body: string,
  headers: Headers,
): Promise<Response> {
  const notice = await provider.notice(body, headers);
  switch (notice.kind) {
    case "forged":
      return failureReply(fail("invalid_request", "The signature is wrong."));
    case "other":
      return jsonReply({ received: true });
    case "unusable":
      // Another call would be the same, so it is accepted and left to an operator.
      log("error", "a payment was not credited: it is not what was ordered", { reason: notice.reason });
      return jsonReply({ received: true });
    case "paid": {
      const { payment } = notice;
      const paid = await office.change(async ({ accounts, purchases }) =>
        (await accounts.record(payment.account)) === null ? null : purchases.paid(payment),
      );
      if (paid === null)
        log("error", "a payment was not credited: its account does not exist", { payment: payment.id });
      if (paid?.credited) log("info", "a payment was credited", { account: payment.account, tokens: payment.tokens });
      return jsonReply({ received: true });
    }
    default:
      return notice satisfies never;
  }
}
