// OpenAI's field for the urgency of a request.
import type { Priority } from "../../core/priority.ts";
import { oneOf, optional } from "./field.ts";

export const serviceTier = optional(oneOf("auto", "default", "flex", "priority", "scale"));

const asked: Readonly<Record<string, Priority>> = {
  priority: "interactive",
  scale: "standard",
  default: "standard",
  flex: "bulk",
};

/** As a member of an Ask; empty where nothing is requested. */
export const priorityAsked = (tier: string | null | undefined): { priority?: Priority } => {
  const priority = asked[tier ?? "auto"];
  return priority === undefined ? {} : { priority };
};

const tiers: Readonly<Record<Priority, string>> = { interactive: "priority", standard: "default", bulk: "flex" };

export const tierOf = (priority: Priority): string => tiers[priority];
