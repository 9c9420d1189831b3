// Rows that a running server takes now and then from what counts them and hands to their keeper. Queries see all rows that
// came before them.
import type { Clock } from "../core/clock.ts";
import type { Log } from "../core/log.ts";
import { type Ms, StoreUnavailable } from "../core/types.ts";
import { Outage } from "./outage.ts";

/** A Worker with a file, or a database. */
export type Keeper<Call> = Readonly<{
  call<Result>(call: Call): Promise<Result>;
  close(): Promise<void>;
}>;

type Take<Item> = () => Promise<readonly Item[]> | readonly Item[];

export abstract class Kept<Call, Item> {
  protected readonly clock: Clock;
  protected readonly keeper: Keeper<Call>;
  protected readonly outage: Outage;
  readonly #subject: string;
  readonly #timer: Timer;
  #take: Take<Item> = () => [];
  /** One after the other: queries wait for the rows taken before. */
  #writing: Promise<void> = Promise.resolve();

  /** A kill loses what came within `intervalMs`. */
  constructor(subject: string, intervalMs: Ms, keeper: Keeper<Call>, clock: Clock, log: Log) {
    this.#subject = subject;
    this.keeper = keeper;
    this.clock = clock;
    this.outage = new Outage(log, notKept(subject), `${subject} is written again`);
    this.#timer = setInterval(() => void this.write(), intervalMs);
    this.#timer.unref();
  }

  protected abstract callsOf(items: readonly Item[]): readonly Call[];

  follow(take: Take<Item>): void {
    this.#take = take;
  }

  /** Resolves when everything that came before is kept, or could not be written: then that is in the log. */
  write(): Promise<void> {
    return this.#add(this.#take);
  }

  protected put(items: readonly Item[]): Promise<void> {
    return this.#add(() => items);
  }

  /** Rejects with StoreUnavailable. */
  protected async asked<Result>(call: Call): Promise<Result> {
    try {
      return await this.keeper.call<Result>(call);
    } catch (thrown) {
      throw new StoreUnavailable(`${this.#subject} cannot be read: ${(thrown as Error).message}`, { cause: thrown });
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.write();
    await this.keeper.close();
  }

  #add(take: Take<Item>): Promise<void> {
    this.#writing = this.#writing.then(async () => {
      try {
        for (const call of this.callsOf(await take())) {
          await this.keeper.call(call);
          this.outage.worked();
        }
      } catch (thrown) {
        this.outage.failed(thrown as Error);
      }
    });
    return this.#writing;
  }
}

/** For the log. */
export const notKept = (subject: string): string => `${subject} cannot be written`;
