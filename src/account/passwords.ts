// Hashing of passwords, a few at a time: argon2id is slow on purpose, and all who sign in at once must neither fill the
// memory nor keep the streams from a core.
import { passwordHashesMax, passwordHashesWaitingMax } from "../limits.ts";

/** `Bun.password`, or what a test counts with. */
export type Hasher = Readonly<{
  hash(password: string): Promise<string>;
  verify(password: string, hash: string): Promise<boolean>;
}>;

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

export class Passwords {
  readonly #hasher: Hasher;
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(hasher: Hasher = argon2id) {
    this.#hasher = hasher;
  }

  /** Throws PasswordsBusy. */
  hash(password: string): Promise<string> {
    return this.#inTurn(() => this.#hasher.hash(password));
  }

  /** Throws PasswordsBusy. */
  verify(password: string, hash: string): Promise<boolean> {
    return this.#inTurn(() => this.#hasher.verify(password, hash));
  }

  async #inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#running === passwordHashesMax) {
      if (this.#waiting.length === passwordHashesWaitingMax) throw new PasswordsBusy();
      const turn = Promise.withResolvers<void>();
      this.#waiting.push(turn.resolve);
      await turn.promise; // whoever ended hands its place on, so `#running` stays as it is
    } else this.#running += 1;
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#running -= 1;
      else next();
    }
  }
}
