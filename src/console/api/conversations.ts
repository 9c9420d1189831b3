// Conversations of the playground, of accounts that keep them on the server. What is in their records is the browser's.
import { Type } from "@sinclair/typebox";
import { closed, count, nullable, oneOf } from "./shapes.ts";

const conversation = () =>
  Type.String({ pattern: "^[0-9a-z]{1,64}$", description: "the id of a conversation, of small letters and digits" });
const record = () =>
  Type.String({ pattern: "^(?:~|[0-9a-z]{1,64}(?:/[0-9]{1,3})?)?$", description: "the id of a record" });
/** Of 11 MiB: a file of 8 MiB in base64. */
const contentMaxLength = 11 * 1024 * 1024 + 1_024;
export const conversationBodyMaxBytes = 3 * contentMaxLength;

export const ConversationsQuery = Type.Object({ seen: Type.Optional(Type.String({ maxLength: 20 })) }, closed);

export const Conversations = Type.Object({
  /** `off`: the account keeps them in its browsers; `never`: this server keeps none. */
  state: oneOf(["on", "off", "never"]),
  version: count(),
  conversations_max: count(),
  bytes: count(),
  bytes_max: count(),
  /** The records "" and "~" of each; null: they are as in the version that the browser has seen. */
  heads: nullable(Type.Array(Type.Object({ conversation: Type.String(), id: Type.String(), content: Type.String() }))),
});

/** Turning it off deletes all of them, but not where somebody wrote since that version. */
export const ConversationsChoice = Type.Object({ on: Type.Boolean(), version: count() }, closed);

export const ConversationQuery = Type.Object({ id: conversation(), after: Type.Optional(record()) }, closed);
/** Some of them, until there are none after the last. */
export const ConversationRecords = Type.Object({
  records: Type.Array(Type.Object({ id: Type.String(), content: Type.String() })),
});

export const ConversationWrite = Type.Object(
  {
    id: conversation(),
    /** Nothing is written where it is gone. */
    known: Type.Boolean(),
    records: Type.Array(
      Type.Object(
        {
          id: record(),
          /** What a search finds it by, in lower case. */
          words: Type.String({ maxLength: contentMaxLength }),
          content: Type.String({ maxLength: contentMaxLength }),
          /** What is there already stays. */
          once: Type.Optional(Type.Boolean()),
        },
        closed,
      ),
      { minItems: 1, maxItems: 1_000 },
    ),
  },
  closed,
);
export const ConversationWritten = Type.Object({ state: oneOf(["kept", "gone", "off", "full"]), version: count() });

export const NamedConversations = Type.Object({ ids: Type.Array(conversation(), { maxItems: 1_000 }) }, closed);

export const ConversationSearch = Type.Object({ words: Type.String({ minLength: 1, maxLength: 200 }) }, closed);
export const ConversationsFound = Type.Object({ ids: Type.Array(Type.String()) });
