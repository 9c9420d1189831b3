// The ids of the plans, from the smallest to the largest; a catalog says what each has. Browsers import it, too.

export const planIds = ["free", "plus", "standard", "pro"] as const;
export type PlanId = (typeof planIds)[number];
