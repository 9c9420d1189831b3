// Who shares the ledger's database, from any machine that knows its address.
import { CommandError } from "../../core/expected-error.ts";
import { gatewayFacts, type GatewayFacts } from "../../store/postgres/server-facts.ts";
import { lookAtServer } from "../../store/postgres/start.ts";

/** Null: no gateway has made the tables yet. Throws CommandError where the ledger is in a data folder. */
export async function gatewaysOf(databaseUrl: string | null): Promise<readonly GatewayFacts[] | null> {
  if (databaseUrl === null) {
    throw new CommandError(
      "the ledger is in a data folder, which one gateway has alone; several share a PostgreSQL: url in [ledger], or TOLLGATE_DATABASE_URL",
    );
  }
  const { connection, state } = await lookAtServer(databaseUrl);
  try {
    return state.made ? await gatewayFacts(connection) : null;
  } finally {
    connection.close();
  }
}

export const gatewayReports = async (databaseUrl: string | null) =>
  ((await gatewaysOf(databaseUrl)) ?? []).map(gatewayReport);

export const secondsOf = (ms: number): number => Math.round(ms / 100) / 10;

/** In the words of `tollgate gateways --json`. */
export const gatewayReport = ({ gateway, lane, isGone, seenMs, version, configDigest, shares }: GatewayFacts) => ({
  name: gateway,
  life: lane,
  alive: !isGone,
  lag_seconds: secondsOf(seenMs),
  version,
  config_digest: configDigest,
  shares,
});
