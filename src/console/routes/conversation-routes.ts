// Conversations of the playground that the signed-in account keeps on the server. No route reads another's, operators' included.
import type { ConsoleParts } from "../parts.ts";
import { done, fail, type Failure, type Route, route } from "./route.ts";

const sliceBytes = 4 * 1024 * 1024;
const never: Failure = fail("not_found", "This server keeps no conversations.");

export function conversationRoutes({ conversations }: Pick<ConsoleParts, "conversations">): Route[] {
  return [
    route("GET /conversations", async ({ visitor: { account }, query: { seen } }) => {
      const none = { version: 0, conversations_max: 0, bytes: 0, bytes_max: 0, heads: [] };
      if (conversations === null) return { state: "never", ...none };
      const { conversations: rows, conversationBounds: bounds } = conversations;
      const bounded = { conversations_max: bounds.conversationsMax, bytes_max: bounds.accountBytesMax };
      const [share] = await rows.conversationShare(account.id);
      if (share === undefined) return { state: "off", ...none, ...bounded };
      const { version, bytes } = share;
      const heads = seen === String(version) ? null : await rows.conversationHeads(account.id);
      return { state: "on", version, bytes, ...bounded, heads: heads === null ? null : [...heads] };
    }),

    route("POST /conversations/choice", async ({ visitor: { account }, body: { on } }) => {
      if (conversations === null) return never;
      await conversations.conversations.keepConversations(account.id, on);
      return done;
    }),

    route("GET /conversations/records", async ({ visitor: { account }, query: { id, after = "" } }) => {
      if (conversations === null) return never;
      return {
        records: [...(await conversations.conversations.conversationRecords(account.id, id, after, sliceBytes))],
      };
    }),

    route("GET /conversations/search", async ({ visitor: { account }, query: { words } }) => {
      if (conversations === null) return never;
      return { ids: [...(await conversations.conversations.conversationsWith(account.id, words.toLowerCase()))] };
    }),

    route("POST /conversations/write", async ({ visitor: { account }, body }) => {
      if (conversations === null) return never;
      return conversations.conversations.writeConversation(account.id, body, conversations.conversationBounds);
    }),

    route("POST /conversations/remove", async ({ visitor: { account }, body: { id } }) => {
      if (conversations === null) return never;
      await conversations.conversations.removeConversation(account.id, id);
      return done;
    }),
  ];
}
