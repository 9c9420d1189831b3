// Limits attempts of a signed-in user to prove the password, because a stolen session could guess it.
import type { PasswordTurn } from "../../account/sign-in/passwords.ts";
import { RecentTries } from "../../account/sign-in/recent-tries.ts";
import type { Clock } from "../../core/clock.ts";
import { signInAddressTriesMax, signInTriesMax, signInWindowMs } from "../../core/limits.ts";
import { fail, type Failure, type Visitor } from "./route.ts";

export class OwnPasswordTries {
  readonly #clock: Pick<Clock, "monotonic">;
  /** By session, so that the account's other sessions are not affected. */
  readonly #ofSession = new RecentTries(signInTriesMax, signInWindowMs);
  /** By account, including correct ones, since each costs as much as a sign-in. */
  readonly #ofAccount = new RecentTries(signInAddressTriesMax, signInWindowMs);

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
  }

  /** Counts an attempt, or returns a failure after too many. */
  begin({ account, session }: Visitor): PasswordTurn | Failure {
    const [place, own, now] = [String(session.id), String(account.id), this.#clock.monotonic()];
    const waitMs = Math.max(this.#ofSession.waitMs(place, now), this.#ofAccount.waitMs(own, now));
    if (waitMs > 0) {
      return fail("too_many_attempts", "Too many attempts. Try again later.", Math.ceil(waitMs / 1000));
    }
    const turn = { name: null, rank: this.#ofAccount.count(own, now) - signInTriesMax, delayMs: 0 };
    this.#ofSession.add(place, now);
    this.#ofAccount.add(own, now);
    return turn;
  }

  succeeded({ session }: Visitor): void {
    this.#ofSession.forget(String(session.id));
  }
}
