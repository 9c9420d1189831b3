// Reads a transcript or speech. Whole transcripts and audio pass as they are; events become OpenAI's, whoever wrote them.
import { unitsOf, unitsWithin } from "../../core/voices.ts";
import { type Ask, type Ending, noUsage, type Sink, type Usage, type Voice } from "../../core/types.ts";
import { EventParser } from "../client/events.ts";
import type { ResponseHeaders } from "../client/framing.ts";
import { type Failure, failed, failureOfEvent, nodeFailed } from "../failure/failure.ts";
import { parseNodeJson, record } from "../json.ts";

/** An hour of speech is 60 KB; with each word's time and probability it is 20 times that. */
const transcriptMaxBytes = 8 * 1024 * 1024;
/** A node that claims to have heard more than such a file can hold is not believed: no codec for speech takes less. */
const bytesOfSecondMin = 80;
/** Bytes a second of audio in formats whose length does not tell. */
const audioBytesPerSecond: Readonly<Record<string, number>> = {
  wav: 44_100,
  pcm: 48_000,
  mp3: 16_000,
  flac: 25_000,
  aac: 16_000,
  opus: 8_000,
};

export class VoiceAnswer {
  readonly #ask: Ask;
  readonly #voice: Voice;
  readonly #sink: Sink;
  #type = "";
  #events: EventParser | null = null;
  #transcript: Buffer[] = [];
  #bytes = 0;
  /** Of the transcript, in parts or in segments, and bytes of audio, that went to the sink. */
  #characters = 0;
  #inSegments = 0;
  #audioBytes = 0;
  /** As the node tells. */
  #seconds: number | null = null;
  begun = false;
  failure: Failure | null = null;

  constructor(ask: Ask, voice: Voice, sink: Sink) {
    this.#ask = ask;
    this.#voice = voice;
    this.#sink = sink;
  }

  head(headers: ResponseHeaders): void {
    this.#type = headers.get("content-type") ?? "";
    const fail = (cause: string) => void this.fail(nodeFailed(cause));
    if (/^text\/event-stream\b/i.test(this.#type)) {
      this.#events = new EventParser({
        event: (payload) => this.#event(payload),
        tooLong: () => fail("a line that is too long"),
      });
    } else if (this.#voice.kind === "spoken" && /^(?:application\/json|text\/)/i.test(this.#type)) {
      fail(`${this.#type.slice(0, 40)} instead of audio`);
    }
  }

  /** Takes nothing after a failure. */
  push(bytes: Buffer, start: number, end: number): void {
    if (this.failure !== null) return;
    if (this.#events !== null) return this.#events.feed(bytes, start, end);
    const copy = Buffer.from(bytes.subarray(start, end));
    if (this.#voice.kind === "spoken") return this.#audio(copy);
    this.#bytes += copy.length;
    if (this.#bytes > transcriptMaxBytes) return void this.fail(nodeFailed("a transcript that is too long"));
    this.#transcript.push(copy);
  }

  fail(failure: Failure): Ending {
    this.failure ??= failure;
    return failed(this.failure);
  }

  /** What came is paid for: as much of the audio, or of the text, as it is. */
  cancelled(): Ending {
    if (!this.begun) return { kind: "cancelled", usage: noUsage, estimated: false };
    const part =
      this.#voice.kind === "heard"
        ? Math.max(this.#characters, this.#inSegments)
        : this.#audioBytes / (audioBytesPerSecond[this.#voice.format] ?? audioBytesPerSecond["mp3"]!);
    return { kind: "cancelled", usage: usageOf(unitsWithin(this.#voice, part)), estimated: true };
  }

  end(): Ending {
    this.#events?.finish();
    if (this.failure !== null) return failed(this.failure);
    if (this.#voice.kind === "spoken") {
      if (this.#audioBytes === 0) return this.fail(nodeFailed("no audio"));
      return this.#ended(unitsOf(this.#voice), false);
    }
    if (this.#events === null) this.#whole(Buffer.concat(this.#transcript));
    if (this.failure !== null) return failed(this.failure);
    const { seconds, isGuessed } = this.#voice;
    return this.#ended(this.#seconds ?? seconds, this.#seconds === null && isGuessed);
  }

  #ended(units: number, estimated: boolean): Ending {
    return { kind: "end", reason: "stop", stopSequence: null, usage: usageOf(units), estimated };
  }

  #whole(bytes: Buffer): void {
    const { isJson } = this.#voice as Extract<Voice, { kind: "heard" }>;
    const isObject = isJson || this.#type.startsWith("application/json"); // vLLM puts plain text into one
    const body = isObject ? record(parseNodeJson(bytes.toString())) : null;
    const said = isJson ? null : body?.["text"];
    const text = typeof said === "string" ? said : bytes.toString();
    if (isJson && body === null) return void this.fail(nodeFailed("a transcript that is no JSON"));
    if (body?.["error"] != null) return void this.fail(failureOfEvent(this.#ask, text, false));
    // Clients are told what is charged.
    const other = this.#hear(body) ? body : { ...body, usage: undefined };
    this.begun = true;
    // It was asked for events, and gives none.
    if (this.#ask.stream) this.#text(isJson ? body!["text"] : text);
    else
      this.#sink.piece({
        kind: "voice",
        bytes: Buffer.from(other === body ? text : JSON.stringify(other)),
        type: this.#type,
        lacksUsage: other?.["usage"] === undefined && body?.["text"] !== undefined,
      });
  }

  #event(payload: string): void {
    if (this.failure !== null || payload === "[DONE]") return;
    const event = record(parseNodeJson(payload));
    if (event === null) return this.#text(payload); // speaches, for response_format text
    const type = event["type"];
    if (event["error"] != null || type === "error") {
      return void this.fail(failureOfEvent(this.#ask, payload, this.begun));
    }
    if (this.#voice.kind === "spoken") {
      if (typeof event["audio"] === "string") this.#audio(Buffer.from(event["audio"], "base64"));
      return;
    }
    this.#hear(event);
    if (type === "transcript.text.segment") {
      this.#inSegments += String(event["text"]).length;
      return this.#segment(payload);
    }
    if (type === "transcript.text.done" && this.#characters > 0) return;
    const choice = record((event["choices"] as unknown[] | undefined)?.[0]);
    // OpenAI's events, vLLM's chunks, and whole segments
    this.#text(event["delta"] ?? record(choice?.["delta"])?.["content"] ?? event["text"]);
  }

  #text(text: unknown): void {
    if (typeof text !== "string" || text === "") return;
    this.#characters += text.length;
    if (this.#characters > transcriptMaxBytes) return void this.fail(nodeFailed("a transcript that is too long"));
    this.begun = true;
    this.#sink.piece({ kind: "text", literal: JSON.stringify(text), logprobs: null });
  }

  #segment(payload: string): void {
    this.begun = true;
    this.#sink.piece({ kind: "voice", bytes: Buffer.from(payload.replaceAll("\n", " ")), type: this.#type });
  }

  #audio(bytes: Buffer): void {
    if (bytes.length === 0) return;
    this.#audioBytes += bytes.length;
    this.begun = true;
    this.#sink.piece({ kind: "voice", bytes, type: this.#events === null ? this.#type : "" });
  }

  /**
   * OpenAI and vLLM tell it in the usage, whisper.cpp and faster-whisper beside the segments. False: it is not believed,
   * and the file's own length counts.
   */
  #hear(body: Record<string, unknown> | null): boolean {
    const said = Number(record(body?.["usage"])?.["seconds"] ?? body?.["duration"] ?? Number.NaN);
    const { seconds, file } = this.#voice as Extract<Voice, { kind: "heard" }>;
    if (said > Math.max(seconds, file.bytes / bytesOfSecondMin)) return false;
    if (said > 0) this.#seconds = Math.ceil(said);
    return true;
  }
}

const usageOf = (units: number): Usage => ({ ...noUsage, inputFresh: units });
