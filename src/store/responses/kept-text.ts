// Packs responses on their way to the Worker that keeps them into one text: a clone of the same objects costs the main
// thread three times as much. First comes a line of JSON with owners and lengths, then the texts without gaps.
import type { AccountId } from "../../core/types.ts";
import type { StoredResponse } from "../../dialects/stored-responses.ts";

/** A response to be kept; `input`, `output` and `settings` are JSON texts (see `StoredResponse`). */
export type KeptResponse = Readonly<{
  account: AccountId;
  id: string;
  previousId: string | null;
  conversation?: StoredResponse["conversation"];
  input: string;
  output: string;
  settings: string;
}>;

type Entry = readonly [
  account: AccountId,
  id: string,
  previousId: string | null,
  conversation: KeptResponse["conversation"],
  inputLength: number,
  outputLength: number,
  settingsLength: number,
];

export function packKept(responses: readonly KeptResponse[]): string {
  const entries: Entry[] = [];
  let texts = "";
  for (const { account, id, previousId, conversation = null, input, output, settings } of responses) {
    entries.push([account, id, previousId, conversation, input.length, output.length, settings.length]);
    texts += input + output + settings;
  }
  return `${JSON.stringify(entries)}\n${texts}`;
}

export function unpackKept(packed: string): KeptResponse[] {
  const head = packed.indexOf("\n");
  let at = head + 1;
  const take = (length: number): string => packed.slice(at, (at += length));
  return (JSON.parse(packed.slice(0, head)) as Entry[]).map(([account, id, previousId, conversation, ...lengths]) => {
    const [input, output, settings] = lengths;
    const kept = { account, id, previousId, conversation: conversation ?? undefined };
    return { ...kept, input: take(input), output: take(output), settings: take(settings) };
  });
}
