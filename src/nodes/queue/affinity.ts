// Sends requests whose prompts begin alike to the same node, which has that beginning cached.
import type { AccountId, Ask } from "../../core/types.ts";
import { promptStart, promptStartCharacters } from "./prompt-start.ts";

/** Hash of what two requests share when their prompts begin alike: account, model, system, tools, first user message. */
export function affinityOf(ask: Ask, account: AccountId): number {
  let start = ask.prepared?.start ?? promptStart(ask.turns);
  for (const { name } of ask.tools) {
    if (start.length >= promptStartCharacters) break;
    start += name;
  }
  return Number(
    BigInt.asUintN(52, BigInt(Bun.hash(`${account} ${ask.model.id} ${start.slice(0, promptStartCharacters)}`))),
  );
}
