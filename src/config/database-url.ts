// Where the ledger is, when that is PostgreSQL: an address with a password in it, which neither logs nor faults show.
import { addressesOf, isForReading } from "../core/database-addresses.ts";
import type { ConfigReading } from "./faults.ts";
import { type Row, secret } from "./rows.ts";

export const databaseUrlVariable = "TOLLGATE_DATABASE_URL";

const wanted = "must be an address such as postgres://user:password@host:5432/database";

/** The key `url`; null: the ledger is in the data folder. */
export function databaseUrl(about: string): Row<string | null> {
  const row = secret("url", { about, aboutVariable: "Variable that holds it instead.", shown: "the data folder" });
  return {
    ...row,
    read(table, place) {
      const url = row.read(table, place);
      return url === null ? null : checked(url, place.reading, (problem) => place.at("url").fault(problem));
    },
    ofText: (typed) => typed,
    readValue: (written, { reading }) =>
      checked(written as string, reading, (problem) => reading.faults.add(`${databaseUrlVariable} ${problem}`)),
  };
}

function checked(url: string, { keys }: ConfigReading, fault: (problem: string) => void): string {
  keys.add(url);
  const problem = problemOfDatabaseUrl(url);
  if (problem !== null) fault(problem);
  return url;
}

/** What is wrong with a database's address, behind its name; never with a part of it. */
export function problemOfDatabaseUrl(url: string): string | null {
  if (isForReading(url)) return "may have no other target_session_attrs than read-write: the ledger is written to";
  return (
    addressesOf(url)
      .map(problemOfAddress)
      .find((problem) => problem !== null) ?? null
  );
}

function problemOfAddress(address: string): string | null {
  const parsed = URL.parse(address);
  if (parsed === null || !/^postgres(?:ql)?:$/.test(parsed.protocol) || parsed.hostname === "") {
    return `${wanted}; ${escaped}`;
  }
  if (!/^\/[^/]+$/.test(parsed.pathname)) return `${wanted}: it names no database; ${escaped}`;
  const parts = [parsed.username, parsed.password, parsed.pathname];
  return parts.every(isDecodable) ? null : `has a % that begins no character; ${escaped}`;
}

const escaped = "in a password, / is written as %2F, # as %23, ? as %3F and % as %25";

function isDecodable(part: string): boolean {
  try {
    decodeURIComponent(part);
    return true;
  } catch {
    return false;
  }
}
