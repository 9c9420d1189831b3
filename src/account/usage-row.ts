// A line of the usage page, with the field names of `tollgate usage --json`.
import type { KeyId, Ms } from "../core/types.ts";
import { keyNameOf } from "./people/key-names.ts";
import { costUsd } from "./money/price.ts";

export type UsageRow = Readonly<{
  time: string;
  request_id: string;
  endpoint: string;
  model: string;
  /** All input tokens, cached ones included. */
  input: number;
  cached_input: number;
  output: number;
  reasoning: number;
  billed_tokens: number;
  cost_usd: number;
  estimated: boolean;
  /** The name of the key that it was asked by. */
  key: string;
  /** For whom the key's program asked; null where it did not say, may not, or who it was is erased. */
  end_user: string | null;
}>;

/** The columns of a journal line that a usage row needs. They are null in lines about no reply, which are not passed here. */
export type JournalReply = Readonly<{
  at: Ms;
  billingKey: string;
  endpoint: string | null;
  model: string | null;
  inputFresh: number | null;
  inputCached: number | null;
  output: number | null;
  reasoning: number | null;
  billedTokens: number | null;
  estimated: boolean | number | null;
  keyId: KeyId;
  /** Null for the first key and for signed-in browsers. */
  keyName: string | null;
  /** Null too where it was erased. */
  endUserName: string | null;
}>;

export function usageRowOf(line: JournalReply): UsageRow {
  const cached = line.inputCached ?? 0;
  const billed = line.billedTokens ?? 0;
  return {
    time: new Date(line.at).toISOString(),
    request_id: line.billingKey,
    endpoint: line.endpoint ?? "",
    model: line.model ?? "",
    input: (line.inputFresh ?? 0) + cached,
    cached_input: cached,
    output: line.output ?? 0,
    reasoning: line.reasoning ?? 0,
    billed_tokens: billed,
    cost_usd: costUsd(billed),
    estimated: Boolean(line.estimated),
    key: keyNameOf(line.keyId, line.keyName),
    end_user: line.endUserName || null,
  };
}
