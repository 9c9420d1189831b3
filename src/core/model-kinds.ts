// What models are for, and what the ones that hear or speak are paid by.

/** Conversations, vectors of texts, an order of documents, audio to text, or text to audio. */
export const modelKinds = ["chat", "embedding", "rerank", "transcription", "speech"] as const;
export type ModelKind = (typeof modelKinds)[number];

/** What their prices are for: so many of their units, seconds or characters, in words. */
export const pricedUnits = {
  transcription: { units: 60, in: "minute" },
  speech: { units: 1_000, in: "1,000 characters" },
} as const;

export type VoiceKind = keyof typeof pricedUnits;

export const isVoice = (kind: ModelKind): kind is VoiceKind => Object.hasOwn(pricedUnits, kind);

/** What the input of requests to an endpoint is counted in. */
export const inputUnitAt = (endpoint: string): "tokens" | "characters" | "seconds" =>
  !endpoint.startsWith("/v1/audio/") ? "tokens" : endpoint.endsWith("/speech") ? "characters" : "seconds";
