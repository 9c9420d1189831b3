// GET /managed/settings: what Claude Code takes as its organization's settings on a machine that signed in. It asks once an hour
// with the checksum of what it has.
import { jsonReply } from "./reply.ts";

export function managedReply(
  request: Request,
  requestId: string,
  settings: Readonly<Record<string, unknown>> | null,
): Response {
  if (settings === null) return jsonReply('{"error":"there are no managed settings"}', requestId, 404);
  const checksum = `sha256:${Bun.SHA256.hash(sortedJson(settings), "hex")}`;
  const etag = `"${checksum}"`;
  const isKnown = request.headers.get("if-none-match") === etag;
  const reply = isKnown
    ? new Response(null, { status: 304 })
    : jsonReply(JSON.stringify({ uuid: checksum, checksum, settings }), requestId);
  reply.headers.set("etag", etag);
  return reply;
}

/** As Claude Code computes it: keys in order at every level, no white space. */
const sortedJson = (value: unknown): string =>
  JSON.stringify(value, (_name, part: unknown) =>
    typeof part === "object" && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).toSorted(([one], [other]) => (one < other ? -1 : 1)))
      : part,
  );
