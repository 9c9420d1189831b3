// An account's deletion by its owner, who shows once more who it is: done at once, or asked of an operator, as the
// configuration says.
import type { DeletionState } from "../api/account.ts";
import type { ConsoleParts } from "../parts.ts";
import { signOutCookie } from "../signed-in.ts";
import { sessionOf } from "./entering.ts";
import type { OwnPasswordTries } from "./own-password-tries.ts";
import { requestOf } from "./plan-routes.ts";
import { fail, type Failure, isFailure, type Route, route, type Visitor, WithCookies } from "./route.ts";

/** How long a sign-in counts as fresh: enough to read, to download the data and to type an address. */
export const freshSignInMs = 10 * 60_000;

export function ownDeletionRoutes(parts: ConsoleParts, tries: OwnPasswordTries): Route[] {
  const { accounts, accountData, sessions, purchases, purchaseRecords, auditLog, clock, baseUrl } = parts;
  const proofOf = ({ account }: Visitor): DeletionState["proof"] =>
    parts.passwordSignIn && account.passwordHash !== null ? "password" : "sign_in";
  const isFresh = ({ session }: Visitor): boolean => clock.wall() - session.createdAt < freshSignInMs;

  return [
    route("GET /deletion", async ({ visitor }) => {
      const request = await purchaseRecords.lastDeletionRequest(visitor.account.id);
      return {
        way: parts.accountDeletion,
        proof: proofOf(visitor),
        is_fresh: isFresh(visitor),
        request: request === null ? null : await requestOf(parts, request),
      };
    }),

    route("POST /deletion", async ({ visitor, body }) => {
      if (parts.accountDeletion === "off")
        return fail("forbidden", "Ask an operator of this server to delete the account.");
      const { id, email } = visitor.account;
      if (body.confirm !== email) return fail("invalid_request", `Type ${email} to delete this account.`);
      const refused = await refusedProof(visitor, body.password ?? "");
      if (refused !== null) return refused;
      const { openReservations: open } = await accounts.numbers(id);
      // What is known at once: nothing comes between this look and the deletion, so that two operators cannot both go.
      const isAnother = accounts.checkNotLastOperator(id);
      if (isAnother instanceof Promise) await isAnother;
      if (parts.accountDeletion === "request") {
        await purchases.ask(id, { kind: "deletion" }, "");
        return sessionOf(parts, visitor.account);
      }
      if (open > 0) return fail("conflict", "Requests of this account are open. Try again when they have ended.");
      // The owner's address is forgotten with the rest.
      const entry = { at: clock.wall(), operator: id, address: "", action: "account.delete", subject: id } as const;
      await accountData.erase(visitor.account, (detail) => auditLog.append({ ...entry, detail }));
      return new WithCookies(await sessionOf(parts, null), signOutCookie(baseUrl));
    }),
  ];

  /** Null: the proof is sufficient. */
  async function refusedProof(visitor: Visitor, password: string): Promise<Failure | null> {
    if (proofOf(visitor) === "sign_in") {
      return isFresh(visitor)
        ? null
        : fail("wrong_credentials", "Sign in again first. Your last sign-in was too long ago.");
    }
    const turn = tries.begin(visitor);
    if (isFailure(turn)) return turn;
    const owner = await accounts.signIn(visitor.account.email, password, turn);
    if (owner?.id !== visitor.account.id) return fail("wrong_credentials", "The password is wrong.");
    tries.succeeded(visitor);
    // Hashing takes its time: the session may have been ended since.
    return (await sessions.isOpen(visitor.session, clock.wall())) ? null : fail("not_signed_in", "Sign in first.");
  }
}
