// OpenAI's word for how urgent a request is.
import type { Priority } from "../../core/priority.ts";
import { oneOf, optional } from "./field.ts";

export const serviceTier = optional(oneOf("auto", "default", "flex", "priority", "scale"));

const asked: Readonly<Record<string, Priority>> = {
  priority: "interactive",
  scale: "standard",
  default: "standard",
  flex: "bulk",
};

/** As a member of an Ask, which has none where nothing is asked for. */
export const priorityAsked = (tier: string | null | undefined): { priority?: Priority } => {
  const priority = asked[tier ?? "auto"];
  return priority === undefined ? {} : { priority };
};

const tiers: Readonly<Record<Priority, string>> = { interactive: "priority", standard: "default", bulk: "flex" };

export const tierOf = (priority: Priority): string => tiers[priority];
