// Conversations of the playground that the signed-in account keeps on the server. No route reads another's, operators' included.
import type { ConversationBounds } from "../../core/conversations.ts";
import type { ConsoleParts } from "../parts.ts";
import { done, fail, type Failure, type Route, route } from "./route.ts";

const conversationsMax = 1_000;
const bytesMax = 250_000_000;
const sliceBytes = 4 * 1024 * 1024;
const never: Failure = fail("not_found", "This server keeps no conversations.");

export function conversationRoutes({ conversations: kept }: Pick<ConsoleParts, "conversations">): Route[] {
  const rows = kept?.conversations;
  const bounds = (): ConversationBounds => ({
    conversationsMax,
    accountBytesMax: Math.min(bytesMax, kept!.limits.accountBytesMax),
    totalBytesMax: kept!.hasRoom() ? kept!.limits.totalBytesMax : 0,
  });
  return [
    route("GET /conversations", async ({ visitor: { account }, query: { seen } }) => {
      const none = { version: 0, conversations_max: conversationsMax, bytes: 0, bytes_max: 0, heads: [] };
      if (rows === undefined) return { state: "never", ...none };
      const bytes_max = bounds().accountBytesMax;
      const [share] = await rows.conversationShare(account.id);
      if (share === undefined) return { state: "off", ...none, bytes_max };
      const { version, bytes } = share;
      const heads = seen === String(version) ? null : [...(await rows.conversationHeads(account.id))];
      return { state: "on", version, conversations_max: conversationsMax, bytes, bytes_max, heads };
    }),

    route("POST /conversations/choice", async ({ visitor: { account }, body: { on, version } }) => {
      if (rows === undefined) return never;
      const isDone = await rows.keepConversations(account.id, on, version);
      return isDone ? done : fail("conflict", "Another browser wrote meanwhile. Try again.");
    }),

    route("GET /conversations/records", async ({ visitor: { account }, query: { id, after = "" } }) =>
      rows === undefined
        ? never
        : { records: [...(await rows.conversationRecords(account.id, id, after, sliceBytes))] },
    ),

    route("GET /conversations/search", async ({ visitor: { account }, query: { words } }) =>
      rows === undefined ? never : { ids: [...(await rows.conversationsWith(account.id, words.toLowerCase()))] },
    ),

    route("POST /conversations/write", ({ visitor: { account }, body }) =>
      rows === undefined ? never : rows.writeConversation(account.id, body, bounds()),
    ),

    route("POST /conversations/remove", async ({ visitor: { account }, body: { ids } }) => {
      await rows?.removeConversations(account.id, ids);
      return done;
    }),
  ];
}
