// The ids of the specification's plans, from the smallest to the largest; a catalog says what each includes. A shop
// that names its own plans has those instead.

export const planIds = ["free", "plus", "standard", "pro"] as const;
export type PlanId = string;
