// Responses that go on without their clients, and for a while those that have ended, with their events. Each is noted beside
// the stored responses while it runs: a note whose gateway has stopped tells of a response that failed.
import type { Encoder, Keep } from "../dialects/dialect.ts";
import { interrupted, noteIdOf, type StoredResponse, type StoredResponses } from "../dialects/stored-responses.ts";
import type { Clock } from "../core/clock.ts";
import { busyRetrySeconds } from "../core/limits.ts";
import { isRefusal, refuse } from "../core/refusals.ts";
import type { AccountId, Ms, Refusal } from "../core/types.ts";
import { BackgroundOutlet, type BackgroundParts } from "./outlets/background-outlet.ts";

/** Of an account at once. */
const accountRunsMax = 200;
/** Events of all of them; beyond it those of the oldest that have ended go, then the one that grows. */
const eventsBytesMax = 256 * 1024 * 1024;
const eventsKeptMs = 10 * 60_000;
/** How often a gateway looks whether another one was asked to cancel. */
const cancelLookMs = 2_000;
/** Between a charge and its response on disk; a little more, since the latter may be another gateway's. */
const storedWithinMs = 5_000;

type Run = Readonly<{ account: AccountId; outlet: BackgroundOutlet }> & { endedAt: Ms | null; isDiscarded: boolean };

export type BackgroundsParts = Readonly<{
  responses: StoredResponses;
  /** Whether a request is open at another gateway; null: there is none. */
  isOpenElsewhere: ((requestId: string) => Promise<boolean>) | null;
  clock: Clock;
}>;

export class Backgrounds {
  readonly #parts: BackgroundsParts;
  /** By the ids of the responses, the oldest first. */
  readonly #runs = new Map<string, Run>();
  #bytes = 0;

  constructor(parts: BackgroundsParts) {
    this.#parts = parts;
  }

  begin(
    account: AccountId,
    makeEncoder: (keep: Keep) => Encoder,
    reply: BackgroundParts["reply"],
  ): Readonly<{ outlet: BackgroundOutlet; served: () => Promise<void> }> {
    const { responses, clock, isOpenElsewhere } = this.#parts;
    const encoder = makeEncoder((response) => outlet.store(response));
    const note = encoder.background!.stored("in_progress");
    const isFull = this.#runsOf(account) >= accountRunsMax;
    const refused = isFull ? Promise.resolve(refuse("busy", { seconds: busyRetrySeconds })) : this.#note(account, note);
    const noted = refused.then((refusal) => {
      run.isDiscarded = refusal !== null;
      return refusal;
    });
    const store = (response: StoredResponse) => (run.isDiscarded ? undefined : responses.keep(account, response));
    const outlet: BackgroundOutlet = new BackgroundOutlet(
      { reply, encoder, store, hold: (bytes) => this.#hold(bytes) },
      noted,
    );
    const run: Run = { account, outlet, endedAt: null, isDiscarded: false };
    this.#runs.set(note.id, run);
    const looks =
      isOpenElsewhere === null ? null : setInterval(() => void this.#cancelIfAsked(account, note.id), cancelLookMs);
    const served = async (): Promise<void> => {
      await outlet.served();
      if (looks !== null) clearInterval(looks);
      run.endedAt = clock.wall();
      await noted;
      await responses.delete(account, noteIdOf(note.id));
      this.#forget();
    };
    return { outlet, served };
  }

  find(account: AccountId, id: string): BackgroundOutlet | null {
    const run = this.#runs.get(id);
    return run === undefined || run.account !== account || run.isDiscarded ? null : run.outlet;
  }

  /** As JSON text; null: it does not run here, or another gateway may have deleted it since its end. */
  object(account: AccountId, id: string): string | null {
    const outlet = this.find(account, id);
    return outlet === null || (outlet.isOver && this.#parts.isOpenElsewhere !== null) ? null : outlet.object;
  }

  #runsOf(account: AccountId): number {
    let runs = 0;
    for (const run of this.#runs.values()) if (run.account === account && run.endedAt === null) runs += 1;
    return runs;
  }

  /** As JSON text, one that runs elsewhere, or ran here before a restart; null where none is noted. */
  async elsewhere(account: AccountId, id: string): Promise<string | null | Refusal> {
    const { responses } = this.#parts;
    const note = await responses.response(account, noteIdOf(id));
    if (note === null || isRefusal(note)) return note ?? responses.response(account, id); // it may have just ended
    return (await this.#runsElsewhere(id)) ? note : ((await this.#stored(account, id)) ?? interrupted(note));
  }

  /** The response after that, as JSON text; null where none with that id runs anywhere. */
  async cancel(account: AccountId, id: string): Promise<string | null | Refusal> {
    const { responses } = this.#parts;
    const own = this.find(account, id);
    if (own !== null) {
      own.cancelSignal.abort();
      await own.ended;
      return this.object(account, id) ?? responses.response(account, id);
    }
    if (!(await this.#runsElsewhere(id))) return this.elsewhere(account, id);
    const asked = await responses.delete(account, noteIdOf(id));
    return asked === true ? this.#stored(account, id) : asked === false ? null : asked;
  }

  /** False where there is none with that id. */
  async discard(account: AccountId, id: string): Promise<boolean | Refusal> {
    const run = this.find(account, id) === null ? undefined : this.#runs.get(id);
    if (run !== undefined) {
      run.isDiscarded = true;
      run.outlet.cancelSignal.abort();
    }
    const isElsewhere = run === undefined && (await this.#runsElsewhere(id));
    const isNoted = await this.#parts.responses.delete(account, noteIdOf(id));
    // Its gateway stops it when it sees that, and stores what there is: that is to be deleted, too.
    if (isNoted === true && isElsewhere) await this.#stored(account, id);
    return isRefusal(isNoted) ? isNoted : isNoted || run !== undefined;
  }

  async #runsElsewhere(id: string): Promise<boolean> {
    return (await this.#parts.isOpenElsewhere?.(id.replace("resp_", "req_"))) ?? false;
  }

  async #note(account: AccountId, response: StoredResponse): Promise<Refusal | null> {
    const { responses } = this.#parts;
    const id = noteIdOf(response.id);
    await responses.keep(account, { ...response, id });
    const found = await responses.response(account, id);
    return isRefusal(found) ? found : found === null ? refuse("storage_full") : null;
  }

  /** Null where it was not stored soon. */
  async #stored(account: AccountId, id: string): Promise<string | null | Refusal> {
    const { responses, clock, isOpenElsewhere } = this.#parts;
    const until = clock.monotonic() + (isOpenElsewhere === null ? 0 : storedWithinMs);
    for (;;) {
      const response = await responses.response(account, id);
      if (response !== null || clock.monotonic() >= until) return response;
      await Bun.sleep(cancelLookMs / 10);
    }
  }

  async #cancelIfAsked(account: AccountId, id: string): Promise<void> {
    const outlet = this.find(account, id);
    if (outlet === null || (await this.#parts.responses.response(account, noteIdOf(id))) !== null) return;
    outlet.cancelSignal.abort();
  }

  #hold(bytes: number): boolean {
    this.#bytes += bytes;
    if (bytes <= 0 || this.#bytes <= eventsBytesMax) return true;
    for (const { outlet, endedAt } of this.#runs.values()) {
      if (this.#bytes > eventsBytesMax && endedAt !== null) outlet.drop();
    }
    if (this.#bytes <= eventsBytesMax) return true;
    this.#bytes -= bytes;
    return false;
  }

  /** Those that ended long ago. The next to end forgets this one. */
  #forget(): void {
    const oldest = this.#parts.clock.wall() - eventsKeptMs;
    for (const [id, { endedAt, outlet }] of this.#runs) {
      if (endedAt === null || endedAt > oldest) continue;
      outlet.drop();
      this.#runs.delete(id);
    }
  }
}
