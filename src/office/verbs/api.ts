// Tokens of the operators' API, and `apply`.
import { Type } from "@sinclair/typebox";
import { type OperatorToken, tokenScopes } from "../../account/records.ts";
import { applied, invited, shop } from "../apply.ts";
import { oneOf, when, wholeNumber } from "../fields.ts";
import { expiryOf, expiryProblem } from "../link-expiry.ts";
import { formatTable } from "../table.ts";
import { verb } from "../verb.ts";

const nameMaxLength = 60;

export const createToken = verb({
  name: "tokens create",
  summary: "Create a token of the operators' API and show it once",
  fields: {
    name: Type.String({
      pattern: "^[\\w .:@/-]{1,60}$",
      description: "A name, which the audit log shows.",
      rule: `1 to ${nameMaxLength} letters, digits, spaces and . : @ / - _`,
      placeholder: "NAME",
    }),
    scope: oneOf(tokenScopes, "What it may do: one of read, people, all.", "read|people|all"),
    expires: Type.Optional(when("When it expires; without it never.")),
  },
  details:
    "The scope read lists and shows; people also changes accounts and keys; all also changes nodes and the server. " +
    "WHEN is a time such as 2030-01-31T00:00:00Z, or hours or days such as 48h or 7d.",
  scope: "all",
  problem: expiryProblem,
  audit: {
    action: "token.create",
    detail: ({ input }, { id }: { id: number }) => `token ${id}, ${JSON.stringify(input.name)}, scope ${input.scope}`,
  },
  change({ tokens, now }, { input: { name, scope, expires } }) {
    return tokens.create(name, scope, expires === undefined ? null : expiryOf(expires, now, 0));
  },
  print: ({ id, token }) => `${token}\nToken ${id}. It is shown this once: only its hash is kept.`,
});

export const listTokens = verb({
  name: "tokens list",
  summary: "List the tokens of the operators' API",
  scope: "read",
  read: async ({ tokens, now }) => (await tokens.list()).map((token) => viewOf(token, now)),
  print: (tokens) =>
    formatTable(
      ["id", "name", "scope", "state", "made", "expires"],
      tokens.map(({ id, name, scope, state, created_at, expires_at }) => [
        String(id),
        name,
        scope,
        state,
        created_at,
        expires_at ?? "never",
      ]),
    ),
});

export const revokeToken = verb({
  name: "tokens revoke",
  fields: { id: wholeNumber(1, "The token's number in the list.", "ID") },
  summary: "Revoke a token of the operators' API at once",
  words: ["id"],
  scope: "all",
  audit: { action: "token.revoke", detail: ({ input }) => `token ${input.id}` },
  async change({ tokens }, { input }) {
    const { id, name } = await tokens.revoke(input.id);
    return { id, name };
  },
  print: ({ id, name }) => `Token ${id}, "${name}", is void.`,
});

export const apply = verb({
  name: "apply",
  fields: shop,
  summary: "Bring accounts, key limits, teams and invitations in line with a file",
  details:
    "The file is TOML or JSON: [[accounts]] with email, plan, operator, disabled, credit (of new ones) and keys, " +
    "[[teams]] with name, plan, credit (of new ones), disabled and members (email, role, limit_day, limit_month), and " +
    "[[invitations]] with email, plan, credit and expires. What it does not name stays as it is. Everything is checked first, " +
    "and either all of it is applied or none. Keys of new accounts are not shown: owners make theirs in the console. " +
    "`invitations link` prints the link of an invitation.",
  scope: "people",
  run: ({ office }, { actor, input }) => applied(office, actor, input),
  print: ({ changes, dry_run }) =>
    changes.length === 0
      ? "no changes"
      : [
          ...changes,
          `${changes.length} ${changes.length === 1 ? "change" : "changes"}${dry_run ? ", none applied" : ""}`,
          ...(!dry_run && changes.some((change) => change.startsWith(invited)) ? [linksAreHad] : []),
        ].join("\n"),
});

const linksAreHad =
  "tollgate invitations list shows the numbers of the invitations, and tollgate invitations link ID prints a link.";

export default [apply, createToken, listTokens, revokeToken];

const viewOf = ({ id, name, scope, createdAt, expiresAt, revokedAt }: OperatorToken, now: number) => ({
  id,
  name,
  scope,
  state: revokedAt !== null ? "revoked" : expiresAt !== null && expiresAt <= now ? "expired" : "valid",
  created_at: new Date(createdAt).toISOString(),
  expires_at: expiresAt === null ? null : new Date(expiresAt).toISOString(),
});
