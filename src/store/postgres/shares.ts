// How a node's slots are dealt out to the gateways that use it. A decider: what each needs in, one gateway's share out.
//
// One slot after the other goes to the gateway that has fewest for the weight of the accounts that run or wait there, ties to the one
// whose oldest waits longest, and unrequested slots are dealt out evenly, so that the next request begins at once. A share
// grows only into what the others have given back, so that the sum never passes the node's slots, and shrinks only as its
// requests end. A gateway starts a request only below both numbers: without `target` one with a few long requests would go
// on with as many as it once had, and light accounts elsewhere starved (simulated: p99 of 674 s and more).

/** What a gateway says of its part in a node; `accounts`: the sum of their weights; `waitedMs`: how long its oldest has waited. */
export type NodeNeed = Readonly<{ busy: number; waiting: number; accounts: number; waitedMs: number }>;
/** `granted`: slots that no other gateway may use. */
export type ShareRow = NodeNeed & Readonly<{ granted: number }>;
/** It starts a request only while it runs fewer than both. */
export type Share = Readonly<{ granted: number; target: number }>;

export const slotsOf = ({ granted, target }: Share): number => Math.min(granted, target);

/** The next share of one of the gateways. All must give the rows in the same order, so that ties end alike everywhere. */
export function shareOf(slots: number, rows: readonly ShareRow[], own: number): Share {
  const target = targetsOf(slots, rows)[own]!;
  const { granted, busy } = rows[own]!;
  if (target < granted) return { granted: Math.max(target, busy), target };
  const free = slots - rows.reduce((sum, row, index) => (index === own ? sum : sum + row.granted), 0);
  return { granted: Math.max(granted, Math.min(target, free)), target };
}

/** How many slots each should have; in all as many as there are. */
function targetsOf(slots: number, rows: readonly NodeNeed[]): readonly number[] {
  const needed = rows.map(({ busy, waiting }) => busy + waiting);
  const left = slots - needed.reduce((sum, need) => sum + need, 0);
  if (left < 0) return filled(slots, rows, needed);
  const each = Math.floor(left / rows.length);
  return needed.map((need, index) => need + each + (index < left - each * rows.length ? 1 : 0));
}

function filled(slots: number, rows: readonly NodeNeed[], needed: readonly number[]): readonly number[] {
  const targets = rows.map(() => 0);
  for (let left = slots; left > 0; left -= 1) {
    let poorest = -1;
    for (let index = 0; index < rows.length; index += 1) {
      if (targets[index]! < needed[index]! && (poorest === -1 || isPoorer(rows, targets, index, poorest)))
        poorest = index;
    }
    targets[poorest]! += 1;
  }
  return targets;
}

function isPoorer(rows: readonly NodeNeed[], targets: readonly number[], one: number, other: number): boolean {
  // a / b < c / d without a division
  const less = targets[one]! * Math.max(1, rows[other]!.accounts) - targets[other]! * Math.max(1, rows[one]!.accounts);
  return less < 0 || (less === 0 && rows[one]!.waitedMs > rows[other]!.waitedMs);
}
