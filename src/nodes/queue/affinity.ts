// Sends requests whose prompts begin alike to the same node, which has that beginning cached.
import type { AccountId, Ask } from "../../core/types.ts";
import type { NodeConfig } from "../../config/config.ts";
import { promptStart, promptStartCharacters } from "./prompt-start.ts";

/**
 * Hash of what two requests share when their prompts begin alike: account, model, system, tools, first user message.
 * `account` is null where what nodes keep of prompts is everybody's.
 */
export function affinityOf(ask: Ask, account: AccountId | null): number {
  let start = ask.prepared?.start ?? promptStart(ask.turns);
  for (const { name } of ask.tools) {
    if (start.length >= promptStartCharacters) break;
    start += name;
  }
  return Number(
    BigInt.asUintN(
      52,
      BigInt(Bun.hash(`${account ?? "all"} ${ask.model.id} ${start.slice(0, promptStartCharacters)}`)),
    ),
  );
}

/** Whether every node lets accounts share what its engine keeps of prompts. */
export const allShare = (nodes: readonly NodeConfig[]): boolean =>
  nodes.every(({ sharePrefixCache }) => sharePrefixCache === true);
