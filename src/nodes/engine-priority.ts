// How urgent a request is, in the engine's own numbers: engines that schedule by priority begin urgent requests first, and
// may set back a running one for them.
import { type Priority, rankOf } from "../core/priority.ts";
import type { Engine } from "./engine.ts";

/** SGLang sets a request back for one that differs by more than 10 (`--priority-scheduling-preemption-threshold`). */
const step = 100;

/**
 * Undefined where the engine may refuse or ignore the number. `configured`: what the node's row says. vLLM refuses one
 * without `--scheduling-policy priority` and reports its policy nowhere, so that must be configured; SGLang reports it.
 */
export function enginePriority(
  { kind, urgentFirst }: Engine,
  configured: boolean | undefined,
  priority: Priority,
): number | undefined {
  if (configured === false) return undefined;
  const lowFirst = step * (rankOf(priority) - 1);
  if (kind === "sglang") {
    if (urgentFirst === undefined && configured !== true) return undefined;
    return urgentFirst === "low" ? lowFirst : step * (1 - rankOf(priority));
  }
  // An unknown engine may be a router that passes the number on.
  return configured === true && (kind === "vllm" || kind === "unknown") ? lowFirst : undefined;
}
