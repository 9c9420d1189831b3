// What the main server knows about the threads that serve clients beside it.
import type { Metrics } from "./metrics/metrics.ts";
import type { LiveRequests } from "./site.ts";

export interface OtherThreads extends LiveRequests {
  /** Answers whose end waits until their charge is on disk. */
  readonly heldEnds: number;
  /** These counts and those of all other threads, in one. */
  withTheirs(counts: Metrics): Promise<Metrics>;
}

export const together = (own: LiveRequests, others: LiveRequests): LiveRequests => ({
  get openRequests() {
    return own.openRequests + others.openRequests;
  },
  openRequestsOf: (account) => own.openRequestsOf(account) + others.openRequestsOf(account),
});
