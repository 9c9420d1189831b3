// Describes a request for credit or another plan, and its state.
import type { VNode } from "preact";
import type { PurchaseRequest } from "../../api/plan.ts";
import { worth } from "../format.ts";
import { t } from "../texts.ts";

export const requestTitle = ({ kind, tokens, plan }: PurchaseRequest): string =>
  kind === "deletion"
    ? t("deletion.title")
    : kind === "credit"
      ? t("purchase.credit", { tokens: tokens ?? 0, worth: worth(tokens ?? 0) })
      : plan === null
        ? t("purchase.other_plan")
        : t("purchase.plan", { plan: plan[0]?.toUpperCase() + plan.slice(1) });

const looks = { pending: "warn", approved: "good", declined: "bad", withdrawn: "" } as const;

export const StateBadge = ({ state }: { state: PurchaseRequest["state"] }): VNode => (
  <span class={`badge ${looks[state]}`}>{t(`purchase.state_${state}`)}</span>
);
