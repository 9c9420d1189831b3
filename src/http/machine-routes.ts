// What Claude Code asks on a machine that signed in, beside inference: its organization's settings, once an hour, and an answer
// to what it tells of its use, of which nothing is read.
import type { AnyElysia } from "elysia";
import type { Dialects } from "../dialects/registry.ts";
import type { Clock } from "../core/clock.ts";
import { isRefusal } from "../core/refusals.ts";
import { mintRequestId } from "../core/request-id.ts";
import type { AccountId, Principal, Refusal } from "../core/types.ts";
import type { Connection } from "./peer-address.ts";
import { jsonReply, refusalReply } from "./reply.ts";

/** Null: as its person likes. */
export type ManagedSettingsOf = (account: AccountId) => Promise<Readonly<Record<string, unknown>> | null>;

type Parts = Readonly<{
  whoseIs: (request: Request, connection: Connection | null) => Promise<Principal | Refusal>;
  dialects: Dialects;
  clock: Clock;
  settingsOf: ManagedSettingsOf | undefined;
}>;

export function addMachineRoutes(app: AnyElysia, { whoseIs, dialects, clock, settingsOf }: Parts) {
  const dialect = dialects.all.find(({ name }) => name === "messages") ?? dialects.usual;
  const asked =
    (answer: (request: Request, requestId: string, account: AccountId) => Response | Promise<Response>) =>
    async (request: Request, connection: Connection | null): Promise<Response> => {
      const requestId = mintRequestId(clock.wall());
      const asker = await whoseIs(request, connection);
      return isRefusal(asker)
        ? refusalReply(dialect, asker, requestId)
        : await answer(request, requestId, asker.account);
    };
  const manage = asked(async (request, requestId, account) =>
    managedReply(request, requestId, (await settingsOf?.(account)) ?? null),
  );
  const takeTelemetry = asked((_request, requestId) => jsonReply("{}", requestId));
  app.get("/managed/settings", ({ request, server }) => manage(request, server));
  // At no other address: /metrics is the server's own, which no page of another site may ask.
  for (const signal of ["metrics", "logs", "traces"]) {
    app.post(`/v1/${signal}`, ({ request, server }) => takeTelemetry(request, server), { parse: "none" });
  }
}

function managedReply(
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
