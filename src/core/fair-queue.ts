// Decides whose job is next: texts to count, large bodies to read, answers to check. A decider: no threads, timers or
// promises.
//
// Accounts take turns, a slice of work at a time, so that a short job waits for one slice of every other account and
// never for another's megabytes. Within an account: first come, first served.
import { assert } from "./assert.ts";
import type { AccountId } from "./types.ts";

const anyAccount = (): boolean => true;

export class FairQueue<Job extends Readonly<{ account: AccountId }>> {
  /** In the order of turns; no list is empty. */
  readonly #jobs = new Map<AccountId, Job[]>();

  get isEmpty(): boolean {
    return this.#jobs.size === 0;
  }

  enter(job: Job): void {
    const jobs = this.#jobs.get(job.account);
    if (jobs === undefined) this.#jobs.set(job.account, [job]);
    else jobs.push(job);
  }

  countOf(account: AccountId): number {
    return this.#jobs.get(account)?.length ?? 0;
  }

  /**
   * The job that gets the next slice, or null; its account goes to the end of the line. It stays in the queue until it
   * leaves. Accounts that may not run now keep their place.
   */
  next(mayRun: (account: AccountId) => boolean = anyAccount): Job | null {
    for (const [account, jobs] of this.#jobs) {
      if (!mayRun(account)) continue;
      this.#jobs.delete(account);
      this.#jobs.set(account, jobs);
      return jobs[0]!;
    }
    return null;
  }

  /** The job is done or no longer needed. */
  leave(job: Job): void {
    const jobs = this.#jobs.get(job.account);
    const place = jobs?.indexOf(job) ?? -1;
    assert(jobs !== undefined && place >= 0, "a job leaves the queue once");
    jobs.splice(place, 1);
    if (jobs.length === 0) this.#jobs.delete(job.account);
  }
}
