// tollgate gateways: asks the database directly, from any machine that knows its address.
import { formatTable } from "../office/table.ts";
import { gatewayReport, gatewaysOf, secondsOf } from "../server/fleet/gateway-reports.ts";
import type { GatewayFacts } from "../store/postgres/server-facts.ts";
import type { Invocation } from "./command.ts";
import { findingsOfGateways } from "./doctor-database.ts";
import { databaseUrlOf } from "./perform.ts";

export default async function listGateways(invocation: Invocation): Promise<number> {
  const gateways = await gatewaysOf(await databaseUrlOf(invocation));
  if (invocation.flags["json"] === true) console.log(JSON.stringify((gateways ?? []).map(gatewayReport)));
  else if (gateways === null) console.log("The database is empty: no gateway has made its tables yet.");
  else if (gateways.length === 0) console.log("No gateway has worked on this database in the last day.");
  else {
    const headings = ["gateway", "state", "last sign", "version", "configuration", "shares of nodes"];
    console.log(formatTable(headings, gateways.map(rowOf)));
    for (const { level, detail } of findingsOfGateways({ connections: null }, gateways)) {
      if (level !== "ok") console.log(`They ${detail}`);
    }
  }
  return 0;
}

function rowOf({ gateway, isGone, seenMs, version, configDigest, shares }: GatewayFacts): readonly string[] {
  const held = shares.map(({ node, granted, busy }) => `${node}: ${busy} of ${granted}`);
  return [gateway, isGone ? "gone" : "alive", `${secondsOf(seenMs)} s ago`, version, configDigest, held.join(", ")];
}
