// The overview of the signed-in account, its live numbers, and the models that it may use.
import { claimsOf, listedModels, sampleModelOf } from "../../core/catalog.ts";
import { allows, planOf } from "../../core/plans.ts";
import { centsShown, costUsd, ratesOf } from "../../account/money/price.ts";
import { dayOf } from "../../account/money/quota.ts";
import type { Live } from "../live.ts";
import { numbersOf } from "../numbers.ts";
import type { ConsoleParts } from "../parts.ts";
import { type Route, route } from "./route.ts";
import { everything } from "./usage-routes.ts";

const lastRequests = 10;
const spendDays = 30;

export function overviewRoutes(parts: ConsoleParts, live: Live): Route[] {
  const { usage, catalog, clock } = parts;

  return [
    route("GET /overview", async ({ visitor: { account } }) => {
      const today = dayOf(clock.wall());
      const [page, summary] = await Promise.all([
        usage.page(account.id, everything, null, lastRequests),
        usage.summary(account.id, today - (spendDays - 1)),
      ]);
      const spentSince = (day: number) =>
        summary.days.filter((each) => each.day >= day).reduce((sum, { billedTokens }) => sum + billedTokens, 0);
      const todays = spentSince(today);
      const days30 = spentSince(0);
      return {
        plan: { id: account.plan, name: planOf(catalog.plans, account.plan).name },
        numbers: await numbersOf(parts, account.id, live.requests.openRequestsOf(account.id)),
        last_requests: [...page.rows],
        spend: {
          today_tokens: todays,
          today_usd: costUsd(todays),
          days30_tokens: days30,
          days30_usd: costUsd(days30),
        },
      };
    }),

    route("GET /events", ({ visitor }) => live.open(visitor)),

    route("GET /models", ({ visitor: { account } }) => {
      const plan = planOf(catalog.plans, account.plan);
      const had = parts.nodes.had();
      const models = listedModels(catalog).map((model) => {
        const { id, contextTokens } = model;
        const { images, formats } = claimsOf(model);
        const { inputCents, cachedInputCents, outputCents, parts: fine } = ratesOf(model.price);
        return {
          id,
          kind: model.kind,
          context_tokens: contextTokens,
          reads_images: images,
          reads_audio: model.readsAudio === true,
          structured_output: formats,
          price: {
            input_cents: centsShown(inputCents, fine?.input),
            cached_input_cents: centsShown(cachedInputCents, fine?.cachedInput),
            output_cents: centsShown(outputCents, fine?.output),
          },
          flat_price: model.price.kind === "flat",
          output_tokens: model.tier === "own" ? null : model.outputTokensDefault.calls,
          coder: model.coder,
          usable: model.kind === "chat" && allows(plan, model),
          served: had(model),
          available: parts.nodes.takes(id),
        };
      });
      const sample = sampleModelOf(catalog, (model) => had(model) && allows(plan, model));
      return { models, sample: sample === null ? null : { id: sample.id, context_tokens: sample.contextTokens } };
    }),
  ];
}
