// A PostgreSQL address may name several hosts, a server and its standbys, separated by commas: one takes writes.

const wantedSession = "target_session_attrs=";
/** What the ledger needs, whatever the address says. */
const writableSessions: readonly string[] = ["read-write", "primary"];

/** One address for each host, without the parameter that chooses among them. */
export function addressesOf(url: string): readonly string[] {
  const start = url.indexOf("://") + 3;
  const length = url.slice(start).search(/[/?#]/);
  const end = length < 0 ? url.length : start + length;
  const hostsAt = Math.max(start, url.lastIndexOf("@", end - 1) + 1);
  const [path, ...queries] = url.slice(end).split("?");
  const query = queries.join("?").split("&");
  const rest = query.filter((part) => !part.startsWith(wantedSession)).join("&");
  const behind = rest === "" ? path : `${path}?${rest}`;
  return url
    .slice(hostsAt, end)
    .split(",")
    .map((host) => url.slice(0, hostsAt) + host + behind);
}

/** Whether the address asks for a server that takes no writes. */
export function isForReading(url: string): boolean {
  const wanted = url.split(/[?&]/).find((part) => part.startsWith(wantedSession));
  return wanted !== undefined && !writableSessions.includes(wanted.slice(wantedSession.length));
}
