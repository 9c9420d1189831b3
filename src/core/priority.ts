// How urgent a request is beside others: what it asks for, and what its plan lets it have.

/** The most urgent first. */
export const priorities = ["interactive", "standard", "bulk"] as const;
export type Priority = (typeof priorities)[number];

export const rankOf = (priority: Priority): number => priorities.indexOf(priority);

export const isPriority = (word: string): word is Priority => (priorities as readonly string[]).includes(word);

/** Of a plan. */
type Rights = Readonly<{ priority?: Priority; priorityMax?: Priority }>;

/** What a request has that asks for so much; undefined: for nothing. A stranger's header is no reason to be first. */
export function priorityOf({ priority = "standard", priorityMax = "standard" }: Rights, asked?: Priority): Priority {
  const wanted = asked ?? priority;
  return rankOf(wanted) < rankOf(priorityMax) ? priorityMax : wanted;
}
