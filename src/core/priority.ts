// How urgent a request is relative to others: what it asks for, and what its plan allows.

/** Most urgent first. */
export const priorities = ["interactive", "standard", "bulk"] as const;
export type Priority = (typeof priorities)[number];

export const rankOf = (priority: Priority): number => priorities.indexOf(priority);

export const isPriority = (word: string): word is Priority => (priorities as readonly string[]).includes(word);

/** Of a plan. */
type Rights = Readonly<{ priority?: Priority; priorityMax?: Priority }>;
type KeyRights = Readonly<{ priority: Priority | null; priorityMax: Priority | null }>;

/**
 * The priority of a request that asks for this one; undefined: for none. A client's header alone never makes it first, and no
 * key gets more than its plan.
 */
export function priorityOf(
  { priority = "standard", priorityMax = "standard" }: Rights,
  asked?: Priority,
  key: KeyRights | null = null,
): Priority {
  const wanted = asked ?? key?.priority ?? priority;
  const ofPlan = lessUrgent(wanted, priorityMax);
  return key === null || key.priorityMax === null ? ofPlan : lessUrgent(ofPlan, key.priorityMax);
}

const lessUrgent = (one: Priority, other: Priority): Priority => (rankOf(one) < rankOf(other) ? other : one);
