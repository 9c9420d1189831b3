// What lists of accounts are sorted and filtered by.

export const accountSorts = [
  "email",
  "plan",
  "state",
  "active",
  "today",
  "month",
  "credit",
  "created",
  "cost_center",
  "limit",
] as const;
export type AccountSort = (typeof accountSorts)[number];
export const accountStates = ["active", "disabled", "operator", "team"] as const;
export type AccountState = (typeof accountStates)[number];
