// Describes a request for credit or another plan, and its state.
import type { VNode } from "preact";
import type { PurchaseRequest } from "../../api/plan.ts";
import { count, worth } from "../format.ts";

export const requestTitle = ({ kind, tokens, plan }: PurchaseRequest): string =>
  kind === "deletion"
    ? "Delete the account"
    : kind === "credit"
      ? `${count(tokens ?? 0)} balance tokens of credit, ${worth(tokens ?? 0)}`
      : `Change to ${planName(plan)}`;

const planName = (plan: string | null): string =>
  plan === null ? "another plan" : plan[0]?.toUpperCase() + plan.slice(1);

const looks = { pending: "warn", approved: "good", declined: "bad", withdrawn: "" } as const;

export const StateBadge = ({ state }: { state: PurchaseRequest["state"] }): VNode => (
  <span class={`badge ${looks[state]}`}>{state}</span>
);
