// The signed-in account's own pages: overview, live numbers, models, key, password and sessions.
import { apiKeyPrefix } from "../account/keys.ts";
import { costUsd, ratesOf } from "../account/price.ts";
import { dayOf } from "../account/quota.ts";
import { SignInTries } from "../account/sign-in-tries.ts";
import {
  type BrowserSessions,
  type ConsoleModels,
  type Done,
  KeyRegeneration,
  type KeyState,
  type NewKey,
  type Overview,
  PasswordChange,
} from "./api.ts";
import { exportReply } from "./account-data.ts";
import type { Live } from "./live.ts";
import { numbersOf, timeOf } from "./numbers.ts";
import type { ConsoleParts } from "./parts.ts";
import { fail, type Route, route, routeWithBody } from "./route.ts";
import { everything } from "./usage-routes.ts";

const lastRequests = 10;
const spendDays = 30;
export const done: Done = { done: true };

export function accountRoutes(parts: ConsoleParts, live: Live): Route[] {
  const { accounts, sessions, usage, catalog, clock } = parts;
  const tries = new SignInTries();

  return [
    route("GET", "/overview", "account", async ({ visitor: { account } }): Promise<Overview> => {
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
        plan: { id: account.plan, name: catalog.plans[account.plan].name },
        numbers: numbersOf(parts, account.id, live.requests.openRequestsOf(account.id)),
        last_requests: [...page.rows],
        spend: {
          today_tokens: todays,
          today_usd: costUsd(todays),
          days30_tokens: days30,
          days30_usd: costUsd(days30),
        },
      };
    }),

    route("GET", "/events", "account", ({ visitor }) => live.open(visitor)),

    route("GET", "/models", "account", (): ConsoleModels => {
      const models = [...catalog.models.values()].map(
        ({ id, contextTokens, readsImages, structuredOutput, ...model }) => {
          const { inputCents, cachedInputCents, outputCents } = ratesOf(model.price);
          return {
            id,
            context_tokens: contextTokens,
            reads_images: readsImages,
            structured_output: structuredOutput,
            price: { input_cents: inputCents, cached_input_cents: cachedInputCents, output_cents: outputCents },
            flat_price: model.price.kind === "flat",
            coder: model.coder,
            served: parts.nodes.serves(id),
            available: parts.nodes.takes(id),
          };
        },
      );
      return { models };
    }),

    route("GET", "/key", "account", ({ visitor: { account } }): KeyState => {
      return { prefix: apiKeyPrefix, created_at: timeOf(account.keyCreatedAt) };
    }),

    routeWithBody("/key/regenerate", "account", KeyRegeneration, async ({ visitor: { account } }): Promise<NewKey> => {
      const created_at = timeOf(clock.wall());
      return { ...(await accounts.rotateKeyById(account.id)), created_at };
    }),

    // A stolen session could try out passwords here.
    routeWithBody("/password", "account", PasswordChange, async ({ visitor: { account, session }, body, address }) => {
      const seconds = tries.count(account.email, address, clock.monotonic());
      if (seconds > 0) return fail("too_many_attempts", "Too many tries. Try again later.", seconds);
      const { old_password, new_password } = body;
      const replacement = await accounts.replacementOfPassword(account.id, old_password, new_password);
      if (replacement === null) return fail("wrong_credentials", "The old password is wrong.");
      tries.succeeded(account.email);
      // Hashing takes its time: an operator may have set another password since, and ended this session.
      if (replacement.isOvertaken() || !sessions.isOpen(session, clock.wall())) {
        return fail("wrong_credentials", "The old password is wrong.");
      }
      await sessions.endAllWith(account.id, session.id, (alongside) => replacement.apply(alongside));
      return done;
    }),

    route("POST", "/export", "account", ({ visitor: { account } }) =>
      exportReply(parts.accountData, account, clock.wall()),
    ),

    route("GET", "/sessions", "account", ({ visitor: { account, session } }): BrowserSessions => {
      const open = sessions.list(account.id, clock.wall());
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

    route("POST", "/sessions/end-others", "account", async ({ visitor: { account, session } }): Promise<Done> => {
      await sessions.endAll(account.id, session.id);
      return done;
    }),

    route("POST", "/sessions/:id/end", "account", async ({ visitor: { account }, id }) => {
      return (await sessions.end(account.id, id)) ? done : fail("not_found", "There is no such session.");
    }),
  ];
}
