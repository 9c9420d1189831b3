// The outlet of a list of results, up to 200 MB: its memory is limited until the client has read it, and a large one
// goes out as fast as its client reads.
import type { ByteBudget } from "../../core/byte-budget.ts";
import { busyRetrySeconds } from "../../core/limits.ts";
import { refuse } from "../../core/refusals.ts";
import type { AccountId, Piece } from "../../core/types.ts";
import type { AnswerEnd } from "../../dialects/dialect.ts";
import type { Collected } from "../../dialects/reply/collected.ts";
import { jsonReply } from "../reply.ts";
import { CollectOutlet, type ReplyParts } from "./collect-outlet.ts";

/** A larger reply goes out in steps of this size and reserves its room step by step. */
export const inputsReplyStepBytes = 256 * 1024;

export class InputsOutlet extends CollectOutlet {
  readonly #room: Room;

  constructor(reply: ReplyParts, client: AbortSignal, budget: ByteBudget, account: AccountId) {
    super(reply, client);
    this.#room = new Room(budget, account);
  }

  override piece(piece: Piece): void {
    if (this.cancelSignal.aborted) return;
    if (piece.kind === "input" && !this.#room.take(piece.json.length)) {
      return this.cut(refuse("busy", { seconds: busyRetrySeconds }));
    }
    super.piece(piece);
  }

  /** Built while it goes out: 160 MB in one piece took 160 MB more and stopped everything for half a second. */
  protected override replyOf(collected: Collected, end: AnswerEnd, requestId: string): Response {
    const parts = collected.parts(end);
    const first = stepOf(parts);
    if (first.isLast) return jsonReply(first.json, requestId);
    const room = this.#room.moved();
    let next: Step | null = first;
    const body = new ReadableStream<Uint8Array>(
      {
        pull(client) {
          const { json, isLast } = next ?? stepOf(parts);
          next = null;
          client.enqueue(Buffer.from(json));
          if (!isLast) return;
          room.leave();
          client.close();
        },
        cancel: () => room.leave(),
      },
      { highWaterMark: 0 },
    );
    return jsonReply(body, requestId);
  }

  /** The request is over: from here on the reply gives back its own room. */
  close(): void {
    this.#room.leave();
  }
}

type Step = Readonly<{ json: string; isLast: boolean }>;

/** The parts up to a step's size or to the last. */
function stepOf(parts: Iterator<string>): Step {
  let json = "";
  while (json.length < inputsReplyStepBytes) {
    const part = parts.next();
    if (part.done === true) return { json, isLast: true };
    json += part.value;
  }
  return { json, isLast: false };
}

/** What one reply takes from the budget, in steps, so that small ones rarely check. */
class Room {
  readonly #budget: ByteBudget;
  readonly #account: AccountId;
  #steps = 0;
  #bytes = 0;

  constructor(budget: ByteBudget, account: AccountId) {
    this.#budget = budget;
    this.#account = account;
  }

  take(bytes: number): boolean {
    this.#bytes += bytes;
    while (this.#steps * inputsReplyStepBytes < this.#bytes) {
      if (!this.#budget.enter(this.#account, inputsReplyStepBytes)) return false;
      this.#steps++;
    }
    return true;
  }

  /** The same room with another owner; this one has nothing afterwards. */
  moved(): Room {
    const other = new Room(this.#budget, this.#account);
    other.#steps = this.#steps;
    this.#steps = 0;
    return other;
  }

  leave(): void {
    for (; this.#steps > 0; this.#steps--) this.#budget.leave(this.#account, inputsReplyStepBytes);
  }
}
