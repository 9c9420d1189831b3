// Nodes by names that mean the same on all gateways: work elsewhere counts where a node of this gateway did it.
import { expect, test } from "bun:test";
import type { NodeWork } from "../../../src/core/node-work.ts";
import { sharedNodes } from "../../../src/server/fleet/shared-nodes.ts";

function gatewayOn(host: string, addresses: Readonly<Record<string, string>>) {
  const heard: NodeWork[] = [];
  const pool = {
    needs: () => [],
    limitSlots: () => {},
    modelNeeds: () => new Map<string, never>(),
    limitModels: () => {},
    addresses: new Map(Object.entries(addresses)),
    takeServed: () =>
      Object.keys(addresses).map((node, at) => ({ node, account: at + 1, member: "user ada", work: 10 * (at + 1) })),
    servedElsewhere: (work: NodeWork) => void heard.push(work),
  };
  return { heard, shared: sharedNodes(pool, host) };
}

test("an address that is this machine's is another node elsewhere, and a node may have another name there", () => {
  const one = gatewayOn("east", {
    own: "http://localhost:8000/v1",
    gpu: "http://10.0.0.5:8000/v1",
    left: "http://x/v1",
  });
  const other = gatewayOn("west", { own: "http://localhost:8000/v1", big: "http://10.0.0.5:8000/v1/" });
  const beside = gatewayOn("east", { mine: "http://localhost:8000/v1" });
  const served = one.shared.takeServed!();
  other.shared.servedElsewhere!(served);
  beside.shared.servedElsewhere!(served);
  expect(other.heard).toEqual([{ node: "big", account: 2, member: "user ada", work: 20 }]);
  expect(beside.heard).toEqual([{ node: "mine", account: 1, member: "user ada", work: 10 }]);
});
