// Measures how busy the benchmark's own node and client were: a proxy's figures mean something only while these had
// time to spare.
import { coreOf } from "./placement.ts";

export type LoadShare = Readonly<{
  way: string;
  /** Shares of one core, 0..1. */
  node: number;
  client: number;
}>;

/** From here on the load is what limits. */
const busyShare = 0.9;

/** One line for the results; names the ways in which node and client had nothing left to give. */
export function loadShareNote(shares: readonly LoadShare[]): string {
  const oneCore = coreOf("node") !== null && coreOf("node") === coreOf("client");
  const parts = shares.map(({ way, node, client }) => `${way} ${percent(node)} and ${percent(client)}`);
  const used = ({ node, client }: LoadShare) => (oneCore ? node + client : Math.max(node, client));
  const busy = shares.filter((share) => used(share) >= busyShare).map(({ way }) => way);
  return (
    `Shares of ${oneCore ? "the core that node and client share" : "a core that node and client used"}: ` +
    `${parts.join(", ")}. ` +
    (busy.length === 0
      ? "They could have done more, so they limit no figure above."
      : `They were busy with ${busy.join(" and ")}: what those could do in a second is more than is said above.`)
  );
}

function percent(share: number): string {
  return `${(share * 100).toFixed(0)} %`;
}
