// What requests to models that hear or speak are measured by, and how much of it a part of an answer is.
import type { Model, Voice } from "./types.ts";

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

/** What a model's prices are for: so many of its units, in words. */
export const pricedUnits = {
  transcription: { units: 60, in: "minute" },
  speech: { units: 1_000, in: "1,000 characters" },
} as const;

export const pricedUnitOf = ({ kind }: Pick<Model, "kind">) =>
  kind === "transcription" || kind === "speech" ? pricedUnits[kind] : null;
