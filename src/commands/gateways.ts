// tollgate gateways: who shares the ledger's database, from any machine that knows its address.
import { CommandError } from "../core/expected-error.ts";
import { gatewayFacts, type GatewayFacts } from "../store/postgres/server-facts.ts";
import { lookAtServer } from "../store/postgres/start.ts";
import { type Command, folderFlags } from "./command.ts";
import { findingsOfGateways } from "./doctor-database.ts";
import { databaseUrlOf } from "./perform.ts";
import { formatTable } from "./table.ts";

const command: Command = {
  words: [],
  flags: folderFlags,
  async run(invocation) {
    const url = await databaseUrlOf(invocation);
    if (url === null) {
      throw new CommandError(
        "the ledger is in a data folder, which one gateway has alone; several share a PostgreSQL: url in [ledger], or TOLLGATE_DATABASE_URL",
      );
    }
    const { connection, state } = await lookAtServer(url);
    const gateways = state.made ? await gatewayFacts(connection) : [];
    connection.close();
    if (invocation.flags["json"] === true) console.log(JSON.stringify(gateways.map(reportOf)));
    else if (!state.made) console.log("The database is empty: no gateway has made its tables yet.");
    else if (gateways.length === 0) console.log("No gateway has worked on this database in the last day.");
    else {
      console.log(
        formatTable(
          ["gateway", "state", "last sign", "version", "configuration", "shares of nodes"],
          gateways.map(rowOf),
        ),
      );
      for (const { level, detail } of findingsOfGateways({ connections: null }, gateways)) {
        if (level !== "ok") console.log(`They ${detail}`);
      }
    }
    return 0;
  },
};
export default command;

const secondsOf = (ms: number): number => Math.round(ms / 100) / 10;

function rowOf({ gateway, isGone, seenMs, version, configDigest, shares }: GatewayFacts): readonly string[] {
  const held = shares.map(({ node, granted, busy }) => `${node}: ${busy} of ${granted}`);
  return [gateway, isGone ? "gone" : "alive", `${secondsOf(seenMs)} s ago`, version, configDigest, held.join(", ")];
}

/** In the words of `tollgate gateways --json`. */
const reportOf = ({ gateway, lane, isGone, seenMs, version, configDigest, shares }: GatewayFacts) => ({
  name: gateway,
  life: lane,
  alive: !isGone,
  lag_seconds: secondsOf(seenMs),
  version,
  config_digest: configDigest,
  shares,
});
