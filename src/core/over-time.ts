// Of which time people ask what was used, and by what they split it.

export const rangeNames = ["1h", "24h", "7d", "30d", "90d", "1y"] as const;
export type RangeName = (typeof rangeNames)[number];

export const usageSplits = ["model", "key", "endpoint", "end_user", "account"] as const;
export type UsageSplit = (typeof usageSplits)[number];
