// Deletion of an account by its owner, who proves the identity again: done at once or requested, as configured.
import type { DeletionState } from "../api/account.ts";
import { ask } from "../ask.ts";
import { erase } from "../../office/verbs/accounts.ts";
import { purchaseView } from "../../office/verbs/purchases.ts";
import type { ConsoleParts } from "../parts.ts";
import { signOutCookie } from "../signed-in.ts";
import { sessionOf } from "./entering.ts";
import type { OwnPasswordTries } from "./own-password-tries.ts";
import { fail, type Failure, isFailure, type Route, route, type Visitor, WithCookies } from "./route.ts";

/** How long a sign-in counts as fresh: enough to read, to download the data and to type an address. */
export const freshSignInMs = 10 * 60_000;

export function ownDeletionRoutes(parts: ConsoleParts, tries: OwnPasswordTries): Route[] {
  const { office, baseUrl } = parts;

  return [
    route("GET /deletion", async ({ visitor }) => {
      const { id } = visitor.account;
      const request = await office.read(async (unit) => {
        const last = await unit.purchases.records.lastDeletionRequest(id);
        return last === null ? null : purchaseView(unit, last);
      });
      return {
        way: parts.accountDeletion,
        proof: proofOf(parts, visitor),
        is_fresh: isFresh(parts, visitor),
        request,
      };
    }),

    route("POST /deletion", async ({ visitor, body }) => {
      if (parts.accountDeletion === "off")
        return fail("forbidden", "Ask an operator of this server to delete the account.");
      const { id, email } = visitor.account;
      if (body.confirm !== email) return fail("invalid_request", `Type ${email} to delete this account.`);
      const refused = await refusedProof(parts, tries, visitor, body.password ?? "");
      if (refused !== null) return refused;
      if (parts.accountDeletion === "request") {
        await office.change(async (unit) => {
          await unit.accounts.checkNotLastOperator(id);
          await unit.purchases.ask(id, { kind: "deletion" }, "");
        });
        return sessionOf(parts, visitor.account);
      }
      const { openReservations: open } = await office.read(async ({ accounts }) => {
        await accounts.checkNotLastOperator(id);
        return accounts.numbers(id);
      });
      if (open > 0) return fail("conflict", "Requests of this account are open. Try again when they have ended.");
      // The owner's address is forgotten with the rest.
      await ask(parts, "account", { visitor, address: "" }, erase, { email });
      return new WithCookies(await sessionOf(parts, null), signOutCookie(baseUrl));
    }),
  ];
}

export const proofOf = (
  { passwordSignIn }: Pick<ConsoleParts, "passwordSignIn">,
  { account }: Visitor,
): DeletionState["proof"] => (passwordSignIn && account.passwordHash !== null ? "password" : "sign_in");

const isFresh = ({ clock }: Pick<ConsoleParts, "clock">, { session }: Visitor): boolean =>
  clock.wall() - session.createdAt < freshSignInMs;

/** Null: it is the owner, and not a stolen session. */
export async function refusedProof(
  parts: ConsoleParts,
  tries: OwnPasswordTries,
  visitor: Visitor,
  password: string,
): Promise<Failure | null> {
  const { office, passwords } = parts;
  if (proofOf(parts, visitor) === "sign_in") {
    return isFresh(parts, visitor)
      ? null
      : fail("wrong_credentials", "Sign in again first. Your last sign-in was too long ago.");
  }
  const turn = tries.begin(visitor);
  if (isFailure(turn)) return turn;
  const owner = await passwords.owner(office, visitor.account.email, password, turn);
  if (owner?.id !== visitor.account.id) return fail("wrong_credentials", "The password is wrong.");
  tries.succeeded(visitor);
  // Hashing takes time: the session may have ended meanwhile.
  const isOpen = await office.read(({ sessions }) => sessions.isOpen(visitor.session));
  return isOpen ? null : fail("not_signed_in", "Sign in first.");
}
