// Rows that a running server takes now and then from what counts them and hands to their keeper. Queries see all rows that
// came before them.
import type { Clock } from "../core/clock.ts";
import type { Log } from "../core/log.ts";
import { type Ms, StoreUnavailable } from "../core/types.ts";
import { Outage } from "./outage.ts";

type Take<Item> = () => Promise<readonly Item[]> | readonly Item[];

type Asked<Keeper> = {
  [Name in keyof Keeper]: Keeper[Name] extends (...given: never) => unknown ? Name : never;
}[keyof Keeper];

/** `Keeper`: a database, or what a Worker has of a file. `end` lets go of it. */
export type KeptOptions<Keeper> = Readonly<{
  keeper: Keeper;
  end?(): Promise<void>;
  clock: Clock;
  log: Log;
}>;

export abstract class Kept<Keeper, Item> {
  protected readonly clock: Clock;
  protected readonly keeper: Keeper;
  protected readonly outage: Outage;
  readonly #subject: string;
  readonly #end: () => Promise<void>;
  readonly #timer: Timer;
  #take: Take<Item> = () => [];
  /** One after the other: queries wait for the rows taken before. */
  #writing: Promise<void> = Promise.resolve();

  /** A kill loses what came within `intervalMs`. */
  constructor(subject: string, intervalMs: Ms, { keeper, end = async () => {}, clock, log }: KeptOptions<Keeper>) {
    this.#subject = subject;
    this.keeper = keeper;
    this.#end = end;
    this.clock = clock;
    this.outage = new Outage(log, notKept(subject), `${subject} is written again`);
    this.#timer = setInterval(() => void this.write(), intervalMs);
    this.#timer.unref();
  }

  /** False where there is nothing to write. */
  protected abstract keepAll(items: readonly Item[]): Promise<boolean>;

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

  /** Of all that came before. Rejects with StoreUnavailable. */
  protected async asked<Result>(ask: (keeper: Keeper) => Promise<Result>): Promise<Result> {
    await this.write();
    try {
      return await ask(this.keeper);
    } catch (thrown) {
      throw new StoreUnavailable(`${this.#subject} cannot be read: ${(thrown as Error).message}`, { cause: thrown });
    }
  }

  /** A method of the keeper, asked so. */
  protected asking<Name extends Asked<Keeper>>(name: Name): Keeper[Name] {
    type Method = (...given: readonly unknown[]) => Promise<unknown>;
    const ask: Method = (...given) => this.asked((keeper) => (keeper as Record<Name, Method>)[name](...given));
    return ask as Keeper[Name];
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.write();
    await this.#end();
  }

  #add(take: Take<Item>): Promise<void> {
    this.#writing = this.#writing.then(async () => {
      try {
        if (await this.keepAll(await take())) this.outage.worked();
      } catch (thrown) {
        this.outage.failed(thrown as Error);
      }
    });
    return this.#writing;
  }
}

/** For the log. */
export const notKept = (subject: string): string => `${subject} cannot be written`;
