// The signed-in account's own pages: overview, live numbers, models, key, password and sessions.
import type { AuditAction } from "../../account/records.ts";
import { claimsOf, listedModels, sampleModelOf } from "../../core/catalog.ts";
import { KeyNotFound, type KeyView, limitsDetail } from "../../account/account-keys.ts";
import { AccountError } from "../../account/accounts.ts";
import type { Office, Unit } from "../../account/office.ts";
import { apiKeyPrefix } from "../../account/keys.ts";
import { allows, planOf } from "../../core/plans.ts";
import { centsShown, costUsd, ratesOf } from "../../account/price.ts";
import { dayOf } from "../../account/quota.ts";
import type { AccountKey } from "../api/keys.ts";
import type { Done } from "../api/shapes.ts";
import { exportReply } from "../account-data.ts";
import { audit } from "../audit-entry.ts";
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
  const { office, passwords, browsers, usage, catalog, clock, baseUrl } = parts;
  const passwordTries = new OwnPasswordTries(clock);

  /** What operators do to their own accounts is in the audit log like all that they do. */
  const auditOwn = (unit: Unit, call: Call<"account", unknown, unknown>, action: OwnAction, detail = ""): void => {
    const { account } = call.visitor;
    if (account.operator) audit(unit, call, action, account.id, detail);
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

    route("POST /key/regenerate", (call) =>
      office.change(async (unit) => {
        const rotated = await unit.accounts.rotateKey(call.visitor.account.id);
        auditOwn(unit, call, "key.rotate");
        return { ...rotated, created_at: timeOf(unit.now) };
      }),
    ),

    route("GET /keys", async ({ visitor: { account } }) => {
      const keys = await office.read(({ accountKeys }) => accountKeys.list(account.id));
      return { keys: keys.map(keyOf), prefix: apiKeyPrefix };
    }),

    route("POST /keys", (call) =>
      changedKey(office, async (unit) => {
        const { api_key, ...key } = await unit.accountKeys.create(call.visitor.account.id, call.body);
        auditOwn(unit, call, "key.create", `"${call.body.name}"`);
        return { ...keyOf(key), api_key };
      }),
    ),

    route("POST /keys/:id/name", (call) =>
      changedKey(office, async (unit) => {
        const renamed = await unit.accountKeys.rename(call.visitor.account.id, call.id, call.body.name);
        auditOwn(unit, call, "key.rename", `key ${call.id} to "${call.body.name}"`);
        return keyOf(renamed);
      }),
    ),

    route("POST /keys/:id/limits", (call) =>
      changedKey(office, async (unit) => {
        const { visitor, id, body } = call;
        const limited = await unit.accountKeys.limit(visitor.account.id, id, body);
        auditOwn(unit, call, "key.limits", limitsDetail(id, body));
        return keyOf(limited);
      }),
    ),

    route("POST /keys/:id/revoke", (call) =>
      changedKey(office, async (unit) => {
        await unit.accountKeys.revoke(call.visitor.account.id, call.id);
        auditOwn(unit, call, "key.revoke", `key ${call.id}`);
        return done;
      }),
    ),

    // A stolen session could try out passwords here.
    route("POST /password", async (call) => {
      if (!parts.passwordSignIn) return withoutPasswords;
      const { account, session } = call.visitor;
      const turn = passwordTries.begin(call.visitor);
      if (isFailure(turn)) return turn;
      const { old_password, new_password } = call.body;
      const { passwordHash: old } = account;
      if (old === null || !(await passwords.verify(old_password, old, turn))) return wrongOldPassword;
      const passwordHash = await passwords.hashNew(new_password, turn);
      passwordTries.succeeded(call.visitor);
      const changed = await office.change(async (unit) => {
        // Hashing takes its time: an operator may have set another password since, and ended this session.
        const isStill = (await unit.accounts.isAsItWas(account)) && (await unit.sessions.isOpen(session));
        if (!isStill) return null;
        await unit.accounts.setPassword(account.id, passwordHash);
        await unit.sessions.endAll(account.id, session.id);
        auditOwn(unit, call, "account.password");
        return unit.accounts.record(account.id);
      });
      if (changed === null) return wrongOldPassword;
      // Other browsers are strangers from now on; this one said both passwords.
      const known = browsers.recognize(knownBrowserText(call.request.headers, baseUrl), account);
      const introduced = browsers.introduce(changed, known);
      return new WithCookies(done, knownBrowserCookie(introduced, baseUrl));
    }),

    route("POST /export", ({ visitor: { account } }) =>
      exportReply(parts.accountData, account, account.id, clock.wall()),
    ),

    ...ownDeletionRoutes(parts, passwordTries),

    route("GET /sessions", async ({ visitor: { account, session } }) => {
      const open = await office.read(({ sessions }) => sessions.list(account.id));
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
      await office.change(async ({ sessions }) => sessions.endAll(account.id, session.id));
      return done;
    }),

    route("POST /sessions/:id/end", async ({ visitor: { account }, id }) => {
      return (await office.change(({ sessions }) => sessions.end(account.id, id)))
        ? done
        : fail("not_found", "There is no such session.");
    }),
  ];
}

const keyOf = ({ models, addresses, ...key }: KeyView): AccountKey => ({
  ...key,
  models: models === null ? null : [...models],
  addresses: addresses === null ? null : [...addresses],
});

const wrongOldPassword = fail("wrong_credentials", "The old password is wrong.");

/** What is wrong about a key, in words for whoever asked. */
async function changedKey<Reply>(office: Office, work: (unit: Unit) => Promise<Reply>): Promise<Reply | Failure> {
  try {
    return await office.change(work);
  } catch (thrown) {
    if (thrown instanceof KeyNotFound) return fail("not_found", "There is no such key.");
    if (thrown instanceof AccountError) return fail("conflict", sentence(thrown.message));
    throw thrown;
  }
}

const sentence = (message: string): string => `${message.charAt(0).toUpperCase()}${message.slice(1)}.`;
