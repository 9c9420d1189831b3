// A chooser for suites of the queue alone.
import type { Candidate } from "../../../src/nodes/queue/placement.ts";
import type { Chooser, SentWork } from "../../../src/nodes/queue/slot-queue.ts";

const aRequest: SentWork = { work: 1, unreadWork: 0 };

/** Chooses the node with the smallest part of its slots in use; every request is equal work. */
export const idlest: Chooser = {
  choose(_wanting, candidates) {
    const least = candidates.reduce((least, one) => (load(one) < load(least) ? one : least));
    return { best: least, free: least, savedMs: 0 };
  },
  unreadMs: () => 0,
  readMs: () => 0,
  expectedMs: () => 0,
  sent: () => aRequest,
  began() {},
  ended: () => aRequest.work,
};

function load({ busy, node: { slots, elsewhere = 0 } }: Candidate): number {
  return (busy + elsewhere) / (slots + elsewhere);
}
