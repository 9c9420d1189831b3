// Where an account's mail goes, what it wants of it, and passwords that were forgotten.
import type { AnyElysia } from "elysia";
import { Mails, NoMoreMails, readClaim } from "../../account/people/mails.ts";
import { RecentTries } from "../../account/sign-in/recent-tries.ts";
import { networkOf } from "../../account/sign-in/sign-in-tries.ts";
import type { AccountRecord } from "../../account/records.ts";
import { signInWindowMs } from "../../core/limits.ts";
import { type OptionalMailKind, optionalMailKinds, usualMailKinds } from "../../core/mail.ts";
import { mailPath } from "../lazy-console.ts";
import type { ConsoleParts } from "../parts.ts";
import { privateHeaders } from "../reply.ts";
import { noteOwn, tooManyTries, withoutPasswords } from "./entering.ts";
import { proofOf, refusedProof } from "./own-deletion-routes.ts";
import type { OwnPasswordTries } from "./own-password-tries.ts";
import { done, fail, type Route, route, type Visitor } from "./route.ts";

/** Forgotten passwords of one client within `signInWindowMs`. */
const forgottenTriesMax = 10;
/** What of them reaches the books, of one account. */
const forgottenGapMs = 2 * 60_000;
const forgottenDelayMaxMs = 1_000;

const noMail = fail("not_found", "This server sends no mail.");
const voidLink = fail(
  "invalid_request",
  "This link does not work anymore: it has expired, or was replaced by another.",
);

export function mailRoutes(parts: ConsoleParts, passwordTries: OwnPasswordTries): Route[] {
  const { office, clock, log, work } = parts;
  const tries = new RecentTries(forgottenTriesMax, signInWindowMs);
  const asked = new RecentTries(1, forgottenGapMs);

  /** What strangers cause: they are not told how it went, nor how long it took. */
  async function forget(email: string, secret: Uint8Array): Promise<void> {
    const found = await office.read(async ({ accounts, identities }) => {
      const account = await accounts.recordOf(email);
      if (account === null) return null;
      // Who signs in with the provider alone must not come in by a mail.
      const hasPassword = account.passwordHash !== null || (await identities.of(account.id)).length === 0;
      return hasPassword ? account : null;
    });
    if (found === null) return;
    const [place, now] = [String(found.id), clock.monotonic()];
    if (asked.waitMs(place, now) > 0) return;
    asked.add(place, now);
    await office.change(async ({ accounts, links, mails }) => {
      const account = await accounts.record(found.id);
      if (account !== null) await new Mails(mails).forgotten(links, account, secret);
    });
  }

  return [
    route("POST /forgotten", ({ body, address, isShared }) => {
      if (!parts.passwordSignIn) return withoutPasswords;
      if (work.mail === null) return noMail;
      const [place, now] = [networkOf(address), clock.monotonic()];
      const waitMs = isShared ? 0 : tries.waitMs(place, now);
      if (waitMs > 0) return tooManyTries(Math.ceil(waitMs / 1000));
      if (!isShared) tries.add(place, now);
      const { secret } = work.mail;
      const later = () =>
        forget(body.email, secret).catch((thrown: unknown) =>
          log("warn", "a forgotten password could not be looked up", { reason: String(thrown) }),
        );
      // Its work must not be felt in this answer, nor in the next one.
      setTimeout(() => void later(), Math.random() * forgottenDelayMaxMs);
      return done;
    }),

    ...addressRoutes(parts, passwordTries),
  ];
}

function addressRoutes(parts: ConsoleParts, passwordTries: OwnPasswordTries): Route[] {
  const { office, work } = parts;
  return [
    route("GET /mail", ({ visitor }) => stateOf(visitor)),

    route("POST /mail/address", async (call) => {
      const { visitor, body } = call;
      if (work.mail === null) return noMail;
      const refused = await refusedProof(parts, passwordTries, visitor, body.password ?? "");
      if (refused !== null) return refused;
      await office.change(async (unit) => {
        const mails = new Mails(unit.mails);
        const { id } = await unit.accounts.checkPerson(visitor.account.id);
        if (body.address !== null) {
          if (!(await mails.ask(id, body.address))) throw new NoMoreMails();
          return;
        }
        mails.setAddress(id, null);
        noteOwn(unit, call, "account.address", id, "none");
      });
      return done;
    }),

    route("POST /mail/confirm", async (call) => {
      const { id } = call.visitor.account;
      const { mail } = work;
      if (mail === null) return noMail;
      const address = await office.change(async (unit) => {
        const record = await unit.accounts.checkPerson(id);
        const claim = readClaim(mail.secret, call.body.token, () => record.mailAddress ?? "");
        if (claim === null || claim.account !== id || claim.until <= unit.now) return null;
        new Mails(unit.mails).setAddress(id, claim.what);
        noteOwn(unit, call, "account.address", id, "confirmed by mail");
        return claim.what;
      });
      return address === null ? voidLink : { address };
    }),

    route("POST /mail/kinds", async ({ visitor, body }) => {
      const wanted = optionalMailKinds.filter((kind) => body.kinds.includes(kind));
      await office.change(async ({ mails }) => new Mails(mails).setKinds(visitor.account.id, wanted));
      return done;
    }),

    route("POST /mail/unsubscribe", async ({ body }) => {
      const kind = await unsubscribe(parts, body.token);
      return kind === null ? fail("invalid_request", "This link is none of this server's.") : { kind };
    }),

    route("POST /language", async ({ visitor, body }) => {
      await office.change(async ({ mails }) => new Mails(mails).setLanguage(visitor.account.id, body.language));
      return done;
    }),
  ];

  function stateOf(visitor: Visitor) {
    const { mailAddress: address, mailKinds, operator } = visitor.account;
    const choices = optionalMailKinds.filter((kind) => kind !== "alerts" || operator);
    const wanted = mailKinds ?? usualMailKinds;
    const kinds = choices.filter((kind) => wanted.includes(kind));
    return { address, kinds, choices, proof: proofOf(parts, visitor) };
  }
}

/** What the mail was for; null: the token is none of ours. Once is as good as twice. */
async function unsubscribe({ office, work }: ConsoleParts, token: string): Promise<OptionalMailKind | null> {
  const claim = work.mail === null ? null : readClaim(work.mail.secret, token);
  const kind = optionalMailKinds.find((each) => each === claim?.what);
  if (claim === null || kind === undefined) return null;
  await office.change(async ({ accounts, mails }) => {
    const account = await accounts.record(claim.account);
    if (account !== null && wantedBy(account).includes(kind)) {
      new Mails(mails).setKinds(
        account.id,
        wantedBy(account).filter((each) => each !== kind),
      );
    }
  });
  return kind;
}

const wantedBy = ({ mailKinds }: AccountRecord): readonly string[] => mailKinds ?? usualMailKinds;

/** One-click unsubscription (RFC 8058): mail programs send it, without cookies. Who opens the address sees a page that asks. */
export function addUnsubscription(app: AnyElysia, parts: ConsoleParts): void {
  const tokenOf = ({ url }: Request): string => (new URL(url).searchParams.get("of") ?? "").slice(0, 800);
  app.get(mailPath, ({ request }) => {
    const location = `${parts.baseUrl}/unsubscribe#${encodeURIComponent(tokenOf(request))}`;
    return new Response(null, { status: 303, headers: { ...privateHeaders, location } });
  });
  app.post(
    mailPath,
    async ({ request }) => {
      const isDone = (await unsubscribe(parts, tokenOf(request)).catch(() => undefined)) ?? null;
      return new Response(isDone === null ? "not found" : "done", {
        status: isDone === null ? 404 : 200,
        headers: privateHeaders,
      });
    },
    { parse: "none" },
  );
}
