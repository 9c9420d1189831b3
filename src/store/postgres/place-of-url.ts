// How a database is named to people, of its address.
import { addressesOf } from "../../core/database-addresses.ts";

/** With the user. */
export function databaseAndUser(url: string): string {
  const { username } = partsOf(url);
  return username === "" ? databaseName(url) : `${databaseName(url)} as ${decodeURIComponent(username)}`;
}

/** Without user and password. */
export function databaseName(url: string): string {
  const { database, host } = partsOf(url);
  return `the database "${database}" on ${host}`;
}

export function partsOf(url: string): Readonly<{ database: string; host: string; username: string }> {
  const addresses = addressesOf(url).map((address) => new URL(address));
  const { pathname, username } = addresses[0]!;
  const host = addresses.map(({ hostname, port }) => `${hostname}:${port === "" ? "5432" : port}`).join(", ");
  return { host, database: decodeURIComponent(pathname.slice(1)), username };
}
