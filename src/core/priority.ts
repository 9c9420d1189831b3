// How urgent a request is relative to others: what it asks for, and what its plan allows.

/** Most urgent first. */
export const priorities = ["interactive", "standard", "bulk"] as const;
export type Priority = (typeof priorities)[number];

export const rankOf = (priority: Priority): number => priorities.indexOf(priority);

export const isPriority = (word: string): word is Priority => (priorities as readonly string[]).includes(word);

/** Of a plan. */
type Rights = Readonly<{ priority?: Priority; priorityMax?: Priority }>;

/** The priority of a request that asks for this one; undefined: for none. A client's header alone never makes it first. */
export function priorityOf({ priority = "standard", priorityMax = "standard" }: Rights, asked?: Priority): Priority {
  const wanted = asked ?? priority;
  return rankOf(wanted) < rankOf(priorityMax) ? priorityMax : wanted;
}
