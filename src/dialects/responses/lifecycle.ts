// The events about a response as a whole: created, in progress, and one end, numbered with those of its items.
import type { Clock } from "../../core/clock.ts";
import type { Refusal } from "../../core/types.ts";
import type { AnswerEnd, ReplyForm, ReplyIdentity } from "../dialect.ts";
import { EventNumbers, type OutputItem } from "./output-items.ts";
import {
  incompleteReason,
  responseEnded,
  responseFailed,
  responseInProgress,
  type ResponseText,
} from "./response-object.ts";
import type { ResponsesAsk } from "./body.ts";
import type { Sealer } from "../request/sealed-content.ts";
import type { StoredResponse } from "../stored-responses.ts";

export type ReplyContext = Readonly<{
  sealer: Sealer;
  clock: Clock;
  /** Takes the finished response; null where nothing is stored. */
  keep: ((response: StoredResponse) => void) | null;
}>;

/** Every n-th sign of life is an event, once a minute: Codex ignores comments and gives up after 300 s without one. */
const signsPerEvent = 6;

export class ResponseLifecycle {
  readonly numbers: EventNumbers;
  readonly #ask: ResponsesAsk;
  readonly #identity: ReplyIdentity;
  readonly #clock: Clock;
  #started = false;
  #signs = 0;
  #response: ResponseText | null = null;

  constructor(ask: ResponsesAsk, identity: ReplyIdentity, clock: Clock, form: ReplyForm) {
    this.numbers = new EventNumbers(form === "events");
    this.#ask = ask;
    this.#identity = identity;
    this.#clock = clock;
  }

  /** The finished response object; null before the end. */
  get response(): ResponseText | null {
    return this.#response;
  }

  /** The first events, once: "" from the second call on. */
  start(): string {
    if (this.#started) return "";
    this.#started = true;
    return this.#inProgress("response.created") + this.#inProgress("response.in_progress");
  }

  /** A comment, or an event that changes nothing; `open` is the item that was worked on last. */
  signOfLife(open: OutputItem | undefined): string {
    if (++this.#signs % signsPerEvent !== 0) return ": waiting\n\n";
    if (open !== undefined) return open.emptyDelta();
    return this.start() || this.#inProgress("response.in_progress");
  }

  /** The last event and the terminator; of a whole reply, the response. */
  ended(output: readonly string[], outputText: string, { reason, usage }: AnswerEnd): string {
    const nowSeconds = Math.floor(this.#clock.wall() / 1000);
    this.#response = responseEnded(this.#ask, this.#identity, output, outputText, { reason, usage, nowSeconds });
    if (!this.numbers.wanted) return this.#response.whole;
    const type = incompleteReason(reason) === null ? "response.completed" : "response.incomplete";
    return `${this.numbers.event(type, `"response":${this.#response.whole}`)}data: [DONE]\n\n`;
  }

  /** The last event of a failed response, or one that its client cancelled (null); no terminator follows an error. */
  failed(output: readonly string[], refusal: Refusal | null): string {
    const response = (this.#response = responseFailed(this.#ask, this.#identity, output, refusal));
    const type = refusal === null ? "response.cancelled" : "response.failed";
    return this.start() + this.numbers.event(type, `"response":${response.whole}`);
  }

  /** Before its end. */
  soFar(status: "queued" | "in_progress"): ResponseText {
    return responseInProgress(this.#ask, this.#identity, status);
  }

  #inProgress(type: "response.created" | "response.in_progress"): string {
    if (!this.numbers.wanted) return "";
    return this.numbers.event(type, `"response":${this.soFar("in_progress").whole}`);
  }
}
