// The tools of a request that its model gets: those that it may call.
import type { Ask, Tool } from "./types.ts";

/** The one tool that must be called, or null. `required` with a single tool means the same. */
export function forcedTool({ toolChoice, tools }: Ask): Tool | null {
  if (toolChoice === "required") return tools.length === 1 ? tools[0]! : null;
  if (typeof toolChoice === "string") return null;
  return tools.find(({ name }) => name === toolChoice.named) ?? null;
}

export function sentTools(ask: Ask): readonly Tool[] {
  if (ask.toolChoice === "none") return [];
  const forced = forcedTool(ask);
  return forced === null ? ask.tools : [forced];
}
