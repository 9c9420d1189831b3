// What requests to models that hear or speak are measured by, and how much of it a part of an answer is.
import { partsPerCent } from "./limits.ts";
import { pricedUnits, type VoiceKind } from "./model-kinds.ts";
import type { Price, Voice } from "./types.ts";

/** Of speech in most languages, read aloud. */
const charactersPerSecond = 15;
/** Engines make 12 to 50 tokens of a second of audio, which has 5,000 bytes in base64 at least. */
const audioTokenBytes = 100;

/** What is charged for: seconds of audio, or characters of text. */
export const unitsOf = (voice: Voice): number => (voice.kind === "heard" ? voice.seconds : voice.characters);

/** What of it so much of the answer comes to: characters of a transcript, or seconds of speech. */
export const unitsWithin = (voice: Voice, part: number): number =>
  Math.min(unitsOf(voice), Math.ceil(voice.kind === "heard" ? part / charactersPerSecond : part * charactersPerSecond));

/** Of audio in a message, at most. */
export const audioTokens = (url: string): number => Math.ceil(url.length / audioTokenBytes);

/** US dollars of a minute of audio, or of a thousand characters. */
export function unitDollars(kind: VoiceKind, price: Price): number {
  const [cents, parts] = price.kind === "split" ? [price.inputCents, price.parts?.input ?? 0] : [price.cents, 0];
  const perMillion = (cents * partsPerCent + parts) / (100 * partsPerCent);
  return Number(((perMillion * pricedUnits[kind].units) / 1_000_000).toPrecision(8));
}
