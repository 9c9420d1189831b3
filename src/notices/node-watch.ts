// Decides when to report a node that went away or came back. A decider: the nodes' states and the time come as arguments.
// A node that flaps is reported now and then, not each time:
//
//   away for 30 s, and not reported down in the last 15 minutes  -> node.down
//   reported down, and back for 15 s                             -> node.up
//
// A drained node is away by an operator's wish, and a program of ours that never answered yet is starting.
import type { Ms } from "../core/types.ts";

/** A notice goes out once a node has been away for this long. */
const nodeDownNoticeMs = 30_000;
/** And another one once it has been back for this long. */
const nodeUpNoticeMs = 15_000;
/** Pause before the next notice that the same node is down: one that flaps makes at most 200 notices a day. */
const nodeNoticeIntervalMs = 15 * 60_000;

export type SeenNode = Readonly<{
  name: string;
  health: "well" | "cooling" | "down" | "starting";
  /** By the wall clock. */
  since: Ms;
  problem: string | null;
  drainedAt: Ms | null;
}>;

export type NodeNews = Readonly<{
  event: "node.down" | "node.up";
  node: SeenNode;
  /** How often it went away since it was last reported down. */
  falls: number;
}>;

type Known = {
  isAway: boolean;
  /** Since when that has been so; monotonic. */
  since: Ms;
  wasThere: boolean;
  isReportedDown: boolean;
  reportedDownAt: Ms;
  falls: number;
};

export class NodeWatch {
  readonly #known = new Map<string, Known>();

  look(nodes: readonly SeenNode[], now: Ms): readonly NodeNews[] {
    const names = new Set(nodes.map(({ name }) => name));
    for (const name of this.#known.keys()) if (!names.has(name)) this.#known.delete(name);
    return nodes.flatMap((node) => this.#look(node, now) ?? []);
  }

  #look(node: SeenNode, now: Ms): NodeNews | null {
    const known = this.#knownOf(node.name, now);
    const { health, drainedAt } = node;
    if (drainedAt !== null) {
      known.since = now;
      return null;
    }
    const isAway = health === "down" || (health === "starting" && known.wasThere);
    if (health === "well" || health === "cooling") known.wasThere = true;
    if (isAway !== known.isAway) {
      known.isAway = isAway;
      known.since = now;
      if (isAway) known.falls += 1;
    }
    const forMs = now - known.since;
    if (isAway && !known.isReportedDown) {
      if (forMs < nodeDownNoticeMs || now - known.reportedDownAt < nodeNoticeIntervalMs) return null;
      const { falls } = known;
      known.isReportedDown = true;
      known.reportedDownAt = now;
      known.falls = 0;
      return { event: "node.down", node, falls };
    }
    if (isAway || !known.isReportedDown || forMs < nodeUpNoticeMs || health === "starting") return null;
    known.isReportedDown = false;
    return { event: "node.up", node, falls: known.falls };
  }

  #knownOf(name: string, now: Ms): Known {
    let known = this.#known.get(name);
    if (known === undefined) {
      known = {
        isAway: false,
        since: now,
        wasThere: false,
        isReportedDown: false,
        reportedDownAt: -Infinity,
        falls: 0,
      };
      this.#known.set(name, known);
    }
    return known;
  }
}
