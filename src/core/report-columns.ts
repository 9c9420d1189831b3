// By what reports sum up.

export const reportGroups = [
  "account",
  "team",
  "member",
  "model",
  "endpoint",
  "key",
  "end_user",
  "cost_center",
  "tag",
] as const;
export type ReportGroup = (typeof reportGroups)[number];

export const reportColumns = ["month", "day", ...reportGroups] as const;
export type ReportColumn = (typeof reportColumns)[number];
