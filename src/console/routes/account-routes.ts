// The signed-in account's own pages: overview, live numbers, models, key, password and sessions.
import { claimsOf, listedModels, sampleModelOf } from "../../core/catalog.ts";
import { KeyNotFound, type KeyView, limitsDetail } from "../../account/account-keys.ts";
import { AccountError } from "../../account/accounts.ts";
import type { AuditAction } from "../../account/audit.ts";
import { apiKeyPrefix } from "../../account/keys.ts";
import { allows, planOf } from "../../core/plans.ts";
import { centsShown, costUsd, ratesOf } from "../../account/price.ts";
import { dayOf } from "../../account/quota.ts";
import type { AccountKey } from "../api/keys.ts";
import type { Done } from "../api/shapes.ts";
import { exportReply } from "../account-data.ts";
import { auditEntry } from "../audit-entry.ts";
import type { Live } from "../live.ts";
import { numbersOf, timeOf } from "../numbers.ts";
import type { ConsoleParts } from "../parts.ts";
import { withoutPasswords } from "./entering.ts";
import { OwnPasswordTries } from "./own-password-tries.ts";
import { ownDeletionRoutes } from "./own-deletion-routes.ts";
import { type Call, fail, type Failure, isFailure, type Route, route, WithCookies } from "./route.ts";
import { knownBrowserCookie, knownBrowserText } from "../signed-in.ts";
import { everything } from "./usage-routes.ts";

const lastRequests = 10;
const spendDays = 30;
export const done: Done = { done: true };

/** What operators do to their own accounts. */
type OwnAction = Extract<AuditAction, "account.password" | `key.${string}`>;

export function accountRoutes(parts: ConsoleParts, live: Live): Route[] {
  const { accounts, accountKeys, sessions, browsers, usage, catalog, auditLog, clock, baseUrl } = parts;
  const passwordTries = new OwnPasswordTries(clock);

  /** What operators do to their own accounts is in the audit log like all that they do. */
  const audit = (call: Call<"account", unknown, unknown>, action: OwnAction, detail = ""): void => {
    const { account } = call.visitor;
    if (account.operator) auditLog.append(auditEntry(clock, call, action, account.id, detail));
  };

  return [
    route("GET /overview", async ({ visitor: { account } }) => {
      const today = dayOf(clock.wall());
      const [page, summary] = await Promise.all([
        usage.page(account.id, everything, null, lastRequests),
        usage.summary(account.id, today - (spendDays - 1)),
      ]);
      const spentSince = (day: number) =>
        summary.days.filter((each) => each.day >= day).reduce((sum, { billedTokens }) => sum + billedTokens, 0);
      const todays = spentSince(today);
      const days30 = spentSince(0);
      return {
        plan: { id: account.plan, name: planOf(catalog.plans, account.plan).name },
        numbers: await numbersOf(parts, account.id, live.requests.openRequestsOf(account.id)),
        last_requests: [...page.rows],
        spend: {
          today_tokens: todays,
          today_usd: costUsd(todays),
          days30_tokens: days30,
          days30_usd: costUsd(days30),
        },
      };
    }),

    route("GET /events", ({ visitor }) => live.open(visitor)),

    route("GET /models", ({ visitor: { account } }) => {
      const plan = planOf(catalog.plans, account.plan);
      const had = parts.nodes.had();
      const models = listedModels(catalog).map((model) => {
        const { id, contextTokens } = model;
        const { images, formats } = claimsOf(model);
        const { inputCents, cachedInputCents, outputCents, parts: fine } = ratesOf(model.price);
        return {
          id,
          context_tokens: contextTokens,
          reads_images: images,
          structured_output: formats,
          price: {
            input_cents: centsShown(inputCents, fine?.input),
            cached_input_cents: centsShown(cachedInputCents, fine?.cachedInput),
            output_cents: centsShown(outputCents, fine?.output),
          },
          flat_price: model.price.kind === "flat",
          output_tokens: model.tier === "own" ? null : model.outputTokensDefault.calls,
          coder: model.coder,
          usable: model.kind === "chat" && allows(plan, model),
          served: had(model),
          available: parts.nodes.takes(id),
        };
      });
      const sample = sampleModelOf(catalog, (model) => had(model) && allows(plan, model));
      return { models, sample: sample === null ? null : { id: sample.id, context_tokens: sample.contextTokens } };
    }),

    route("GET /key", ({ visitor: { account } }) => {
      return { prefix: apiKeyPrefix, ending: account.keyEnding, created_at: timeOf(account.keyCreatedAt) };
    }),

    route("POST /key/regenerate", async (call) => {
      const created_at = timeOf(clock.wall());
      const rotated = await accounts.rotateKeyById(call.visitor.account.id, () => audit(call, "key.rotate"));
      return { ...rotated, created_at };
    }),

    route("GET /keys", async ({ visitor: { account } }) => {
      return { keys: (await accountKeys.list(account.id)).map(keyOf), prefix: apiKeyPrefix };
    }),

    route("POST /keys", (call) =>
      orRefused(async () => {
        const { id } = call.visitor.account;
        const detail = `"${call.body.name}"`;
        const { api_key, ...key } = await accountKeys.create(id, call.body, () => audit(call, "key.create", detail));
        return { ...keyOf(key), api_key };
      }),
    ),

    route("POST /keys/:id/name", (call) =>
      orRefused(async () => {
        const { visitor, id, body } = call;
        const detail = `key ${id} to "${body.name}"`;
        return keyOf(
          await accountKeys.rename(visitor.account.id, id, body.name, () => audit(call, "key.rename", detail)),
        );
      }),
    ),

    route("POST /keys/:id/limits", (call) =>
      orRefused(async () => {
        const { visitor, id, body } = call;
        const noted = (): void => audit(call, "key.limits", limitsDetail(id, body));
        return keyOf(await accountKeys.limit(visitor.account.id, id, body, noted));
      }),
    ),

    route("POST /keys/:id/revoke", (call) =>
      orRefused(async () => {
        await accountKeys.revoke(call.visitor.account.id, call.id, () => audit(call, "key.revoke", `key ${call.id}`));
        return done;
      }),
    ),

    // Counts attempts, because a stolen session could guess passwords here.
    route("POST /password", async (call) => {
      if (!parts.passwordSignIn) return withoutPasswords;
      const { account, session } = call.visitor;
      const turn = passwordTries.begin(call.visitor);
      if (isFailure(turn)) return turn;
      const { old_password, new_password } = call.body;
      const replacement = await accounts.replacementOfPassword(account.id, old_password, new_password, turn);
      if (replacement === null) return fail("wrong_credentials", "The old password is wrong.");
      passwordTries.succeeded(call.visitor);
      // Hashing takes its time: an operator may have set another password since, and ended this session.
      const overtaken = replacement.isOvertaken();
      const open = sessions.isOpen(session, clock.wall());
      // Where it is known at once, nothing comes between this look and the change.
      const isVoid = overtaken instanceof Promise ? await overtaken : overtaken;
      const isOpen = open instanceof Promise ? await open : open;
      if (isVoid || !isOpen) {
        return fail("wrong_credentials", "The old password is wrong.");
      }
      const known = browsers.recognize(knownBrowserText(call.request.headers, baseUrl), account);
      await sessions.endAllWith(account.id, session.id, (endSessions) =>
        replacement.apply(() => {
          audit(call, "account.password");
          endSessions();
        }),
      );
      // Other browsers are strangers from now on; this one said both passwords.
      const introduced = browsers.introduce((await accounts.record(account.id))!, known);
      return new WithCookies(done, knownBrowserCookie(introduced, baseUrl));
    }),

    route("POST /export", ({ visitor: { account } }) =>
      exportReply(parts.accountData, account, account.id, clock.wall()),
    ),

    ...ownDeletionRoutes(parts, passwordTries),

    route("GET /sessions", async ({ visitor: { account, session } }) => {
      const open = await sessions.list(account.id, clock.wall());
      return {
        sessions: open.map(({ id, createdAt, usedAt, address, browser }) => ({
          id,
          created_at: timeOf(createdAt),
          last_used_at: timeOf(usedAt),
          address,
          browser,
          current: id === session.id,
        })),
      };
    }),

    route("POST /sessions/end-others", async ({ visitor: { account, session } }) => {
      await sessions.endAll(account.id, session.id);
      return done;
    }),

    route("POST /sessions/:id/end", async ({ visitor: { account }, id }) => {
      return (await sessions.end(account.id, id)) ? done : fail("not_found", "There is no such session.");
    }),
  ];
}

const keyOf = ({ models, addresses, ...key }: KeyView): AccountKey => ({
  ...key,
  models: models === null ? null : [...models],
  addresses: addresses === null ? null : [...addresses],
});

/** What is wrong about a key, in words for whoever asked. */
async function orRefused<Reply>(work: () => Promise<Reply>): Promise<Reply | Failure> {
  try {
    return await work();
  } catch (thrown) {
    if (thrown instanceof KeyNotFound) return fail("not_found", "There is no such key.");
    if (thrown instanceof AccountError) return fail("conflict", sentence(thrown.message));
    throw thrown;
  }
}

const sentence = (message: string): string => `${message.charAt(0).toUpperCase()}${message.slice(1)}.`;
