// Hashes passwords, a few at a time: argon2id is slow on purpose, and a crowd that signs in must neither fill the
// memory nor keep the streams from a core. Names with the fewest attempts go first, so a crowd of tries delays only
// itself.
import type { Ms } from "../../core/types.ts";
import { AccountError } from "../people/accounts.ts";
import type { AccountRecord } from "../records.ts";
import type { Office } from "../office.ts";

/** argon2id takes 64 MiB and 50 ms of a core: at least one core is left for streams. */
export const passwordHashesMax = navigator.hardwareConcurrency > 2 ? 2 : 1;
/** Including those that wait out a delay; beyond it, the names with the most attempts are refused. */
export const passwordHashesWaitingMax = 128;
/** For one name, so that attempts on it do not take others' places: 8 a second at the longest delay. */
export const passwordHashesNameWaitingMax = 32;

/** `Bun.password`, or what a test counts with. */
export type Hasher = Readonly<{
  hash(password: string): Promise<string>;
  verify(password: string, hash: string): Promise<boolean>;
}>;

/** When a password is looked at. */
export type PasswordTurn = Readonly<{
  /** Whose password; null where no stranger asks. */
  name: string | null;
  /** The lowest is first: how often there was a try from the same place lately; below 0 of who is known here. */
  rank: number;
  /** It waits this long before it stands in line. */
  delayMs: Ms;
}>;

/** Of operators and commands: before all others. */
const atOnce: PasswordTurn = { name: null, rank: Number.NEGATIVE_INFINITY, delayMs: 0 };

/** Too many wait already; the same may work in a moment. */
export class PasswordsBusy extends Error {
  override readonly name = "PasswordsBusy";
  constructor() {
    super("too many passwords are being checked; try again in a moment");
  }
}

const argon2id: Hasher = {
  hash: (password) => Bun.password.hash(password),
  verify: (password, hash) => Bun.password.verify(password, hash),
};

type Waiting = { readonly turn: PasswordTurn; readonly place: PromiseWithResolvers<void>; isDue: boolean };

export class Passwords {
  readonly #hasher: Hasher;
  readonly #sleep: (ms: Ms) => Promise<void>;
  /** Compared with where there is no password to compare with; made when it is first wanted. */
  #nobodys: Promise<string> | null = null;
  readonly #waiting: Waiting[] = [];
  #running = 0;

  constructor(hasher: Hasher = argon2id, sleep: (ms: Ms) => Promise<void> = (ms) => Bun.sleep(ms)) {
    this.#hasher = hasher;
    this.#sleep = sleep;
  }

  hash(password: string, turn = atOnce): Promise<string> {
    return this.#inTurn(turn, () => this.#hasher.hash(password));
  }

  /** Of a new password. Throws AccountError for none, and PasswordsBusy. */
  async hashNew(password: string, turn?: PasswordTurn): Promise<string> {
    if (password === "") throw new AccountError("a password must not be empty");
    return this.hash(password, turn);
  }

  /**
   * The account of an e-mail and password, which is not disabled, or null. Unknown e-mails and accounts without a password cost the same work as a
   * wrong password, so that the time says nothing. That took its time: the unit that lets somebody in asks whether the
   * account `isAsItWas`. Throws PasswordsBusy.
   */
  async owner(office: Office, email: string, password: string, turn?: PasswordTurn): Promise<AccountRecord | null> {
    const record = await office.read(({ accounts }) => accounts.recordOf(email));
    const nobodys = await this.ofNobody();
    const matches = await this.verify(password, record?.passwordHash ?? nobodys, turn);
    const mayCome = record !== null && record.passwordHash !== null && record.disabledAt === null;
    return matches && mayCome ? record : null;
  }

  verify(password: string, hash: string, turn = atOnce): Promise<boolean> {
    return this.#inTurn(turn, () => this.#hasher.verify(password, hash));
  }

  /** A hash of an unknown password. One that could not be made (too many wait) is made by the next who wants it. */
  ofNobody(): Promise<string> {
    this.#nobodys ??= this.hash(crypto.getRandomValues(new Uint8Array(32)).toBase64()).catch((thrown: unknown) => {
      this.#nobodys = null;
      throw thrown;
    });
    return this.#nobodys;
  }

  async #inTurn<Result>(turn: PasswordTurn, work: () => Promise<Result>): Promise<Result> {
    if (turn.delayMs > 0 || this.#running === passwordHashesMax) await this.#enter(turn);
    else this.#running += 1;
    try {
      return await work();
    } finally {
      this.#running -= 1;
      this.#advance();
    }
  }

  /** Resolves when it is counted as running. */
  #enter(turn: PasswordTurn): Promise<void> {
    this.#makeRoom(turn);
    const waiting: Waiting = { turn, place: Promise.withResolvers<void>(), isDue: turn.delayMs === 0 };
    this.#waiting.push(waiting);
    if (!waiting.isDue) {
      void this.#sleep(turn.delayMs).then(() => {
        waiting.isDue = true;
        this.#advance();
      });
    }
    return waiting.place.promise;
  }

  /** If there is none, the highest rank is refused: the newest of those, and a newcomer before them. */
  #makeRoom({ name, rank }: PasswordTurn): void {
    const ofName = name === null ? [] : this.#waiting.filter(({ turn }) => turn.name === name);
    const isFull = this.#waiting.length >= passwordHashesWaitingMax;
    if (ofName.length < passwordHashesNameWaitingMax && !isFull) return;
    const crowd = isFull ? this.#waiting : ofName;
    const last = crowd.reduce((worst, each) => (each.turn.rank < worst.turn.rank ? worst : each));
    if (last.turn.rank <= rank) throw new PasswordsBusy();
    this.#waiting.splice(this.#waiting.indexOf(last), 1);
    last.place.reject(new PasswordsBusy());
  }

  #advance(): void {
    while (this.#running < passwordHashesMax) {
      let next: Waiting | null = null;
      for (const each of this.#waiting) {
        if (each.isDue && (next === null || each.turn.rank < next.turn.rank)) next = each;
      }
      if (next === null) return;
      this.#waiting.splice(this.#waiting.indexOf(next), 1);
      this.#running += 1;
      next.place.resolve();
    }
  }
}
