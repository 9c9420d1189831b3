// The contract of the console: every request and reply of /console/api/*, as a schema that the server checks requests
// against and as a type for both sides. Browser code imports the types alone.
//
//   every reply but the event stream, the CSV and the exports is JSON for the page; a failure is ApiError with its HTTP status
//   every change (POST, DELETE) carries a JSON body, or none, and the browser's own Origin header
//   GET  /console/api/session                       -> Session           no sign-in needed
//   POST /console/api/sign-in           SignIn      -> Session           401 wrong, 429 too many tries, 503 busy
//   POST /console/api/sign-up           SignUp      -> CreatedAccount    403 where it is off, 409 known e-mail
//   POST /console/api/sign-out                      -> Session
//   POST /console/api/provider/start    ProviderStart -> ProviderPage    404 where there is none, 503 while it is away
//   POST /console/api/provider/finish   ProviderAnswer -> Entered        401 it does not fit, 403 turned away, 409, 503
//   POST /console/api/link              LinkToken   -> LinkShown         400 used, expired or unknown
//   POST /console/api/link/use          LinkUse     -> Entered           once; as above
//   POST /console/api/password          PasswordChange -> Done           other sessions end; 401 wrong old password
//   GET  /console/api/sessions                      -> BrowserSessions
//   POST /console/api/sessions/end-others           -> Done
//   POST /console/api/sessions/:id/end              -> Done
//   GET  /console/api/overview                      -> Overview
//   GET  /console/api/events                        -> text/event-stream of LiveEvent, see there
//   GET  /console/api/models                        -> ConsoleModels
//   GET  /console/api/key                           -> KeyState
//   POST /console/api/key/regenerate    KeyRegeneration -> NewKey         the key is shown this once
//   GET  /console/api/keys                          -> AccountKeys
//   POST /console/api/keys              NewAccountKey -> CreatedAccountKey  the key is shown this once; 409 for a taken name
//   POST /console/api/keys/:id/name     KeyName     -> AccountKey
//   POST /console/api/keys/:id/limits   KeyLimits   -> AccountKey  absent ones stay, null is limited no more
//   POST /console/api/keys/:id/revoke               -> Done              void at once
//   GET  /console/api/usage             UsageQuery  -> UsagePage
//   GET  /console/api/usage/summary                 -> UsageSummary
//   GET  /console/api/usage.csv         UsageFilter -> text/csv, streamed
//   GET  /console/api/refusals          RefusalsQuery -> RefusalsPage
//   GET  /console/api/plan                          -> PlanPage
//   POST /console/api/plan/requests     NewPurchaseRequest -> PurchaseRequest
//   POST /console/api/plan/requests/:id/withdraw    -> PurchaseRequest
//   POST /console/api/plan/checkout     Checkout    -> CheckoutPage       404 where no payment provider is configured
//   POST /console/api/export                        -> the account's data, as `tollgate accounts export` gives it
//   GET  /console/api/deletion                      -> DeletionState
//   POST /console/api/deletion          OwnDeletion -> Session           deleted and signed out, or asked for; 403 where it is off
//   GET  /console/api/operator/accounts AccountsQuery -> AccountsPage
//   POST /console/api/operator/accounts NewConsoleAccount -> CreatedAccount
//   GET  /console/api/operator/accounts/:id         -> OperatorAccount
//   POST /console/api/operator/accounts/:id/plan    PlanChange -> OperatorAccount
//   POST /console/api/operator/accounts/:id/credit  CreditGrant -> OperatorAccount
//   POST /console/api/operator/accounts/:id/state   StateChange -> OperatorAccount
//   POST /console/api/operator/accounts/:id/password PasswordReset -> Done
//   POST /console/api/operator/accounts/:id/export  -> the account's data as a file, see /export
//   POST /console/api/operator/accounts/:id/delete  AccountDeletion -> OperatorAccount   409 while requests are open
//   POST /console/api/operator/accounts/:id/password-link -> NewLink     the link is shown this once
//   GET  /console/api/operator/invitations          -> Invitations
//   POST /console/api/operator/invitations NewInvitation -> NewLink
//   POST /console/api/operator/invitations/:id/withdraw -> Invitations
//   GET  /console/api/operator/accounts/:id/usage   UsageQuery -> UsagePage
//   GET  /console/api/operator/nodes                -> OperatorNodes
//   POST /console/api/operator/nodes/drain NamedNode -> OperatorNodes      no new requests; 404 where there is no such node
//   POST /console/api/operator/nodes/resume NamedNode -> OperatorNodes
//   POST /console/api/operator/nodes/test NamedNode -> NodeTest            asks it for one token, free of charge
//   GET  /console/api/operator/models               -> OperatorModels
//   GET  /console/api/operator/totals               -> OperatorTotals
//   GET  /console/api/operator/activity ActivityQuery -> ActivityPage
//   GET  /console/api/operator/log      LogQuery -> LogPage
//   GET  /console/api/operator/server               -> OperatorServer
//   POST /console/api/operator/server/reload        -> OperatorServer     `reload` says what became of it
//   POST /console/api/operator/server/backup        -> OperatorServer     409 while one is being made
//   POST /console/api/operator/webhooks/test NamedWebhook -> WebhookTest   posts a notice to it
//   GET  /console/api/operator/requests PurchaseRequestsQuery -> PurchaseRequestsPage
//   POST /console/api/operator/requests/:id/approve Decision -> PurchaseRequest   409 where it was decided otherwise
//   POST /console/api/operator/requests/:id/decline Decision -> PurchaseRequest
//   GET  /console/api/operator/audit    AuditQuery  -> AuditPage
//
// Where people sign in without passwords, sign-in, sign-up, password and the operator's password route answer 403.
//
// The playground has no route of its own. A signed-in browser may call /v1 of the same origin without a key: with its
// cookie, the header `x-tollgate-console: 1` and the Origin header that browsers send with every POST. Everything else
// about those calls, prices included, is as with a key. GET /v1/* still needs a key: see /console/api/models.
//
// Every operator route answers 403 to an account that is no operator. Times are ISO 8601 in UTC, amounts balance tokens.
import { type Static, type TSchema, Type } from "@sinclair/typebox";
import {
  creditGrantMaxTokens,
  creditPurchaseMaxTokens,
  creditPurchaseMinTokens,
  emailMaxLength,
  hourMs,
  linkMaxMs,
  keyListMax,
  keyNameMaxLength,
  passwordMaxLength,
  passwordMinLength,
} from "../core/limits.ts";
import { priorities } from "../core/priority.ts";

// ---------------------------------------------------------------- shapes shared by several

const closed = { additionalProperties: false } as const;
const time = () => Type.String({ description: "a time such as 2026-03-28T00:00:00.000Z" });
const tokens = () => Type.Integer({ description: "a whole number of balance tokens" });
const count = () => Type.Integer({ minimum: 0, description: "a whole number" });
const nullable = <Schema extends ReturnType<typeof time> | ReturnType<typeof tokens> | ReturnType<typeof Type.String>>(
  schema: Schema,
) => Type.Union([schema, Type.Null()]);
const oneOf = <const Words extends readonly string[]>(words: Words) =>
  Type.Union(
    words.map((word) => Type.Literal(word as Words[number])),
    { description: `one of ${words.map((word) => `"${word}"`).join(", ")}` },
  );
const reason = () => Type.String({ maxLength: 500, description: "a text of at most 500 characters" });
/** In an address everything is text. */
const wholeText = () => Type.String({ pattern: "^[0-9]{1,15}$", description: "a whole number" });

export const usagePageMax = 200;
export const pageMax = 100;

const email = () => Type.String({ minLength: 3, maxLength: emailMaxLength, description: "an e-mail address" });
const newPassword = () =>
  Type.String({
    minLength: passwordMinLength,
    maxLength: passwordMaxLength,
    writeOnly: true,
    description: `a password of ${passwordMinLength} to ${passwordMaxLength} characters`,
  });
const knownPassword = () => Type.String({ maxLength: passwordMaxLength, writeOnly: true, description: "the password" });
const cents = () => Type.Number({ minimum: 0 });
/** The last four characters of a key; null for keys from before they were kept. */
const keyEnding = () => nullable(Type.String());
const planId = () => Type.String({ minLength: 1, maxLength: 64, description: "the id of a plan" });

/** Every failure. `code` is fixed, `message` is a sentence for people. */
export const ApiError = Type.Object({
  error: Type.Object({
    code: oneOf([
      "invalid_request",
      "not_signed_in",
      "wrong_credentials",
      "forbidden",
      "foreign_origin",
      "not_found",
      "conflict",
      "too_many_attempts",
      "busy",
      "unavailable",
      "internal",
    ]),
    message: Type.String(),
    /** Of too_many_attempts and busy: when to try again; also in the retry-after header. */
    retry_seconds: Type.Optional(count()),
  }),
});
export type ApiError = Static<typeof ApiError>;
export type ApiErrorCode = ApiError["error"]["code"];

export const Done = Type.Object({ done: Type.Literal(true) });
export type Done = Static<typeof Done>;

// ---------------------------------------------------------------- session

/** Who is signed in, and what the sign-in page may offer. */
export const Session = Type.Object({
  account: Type.Union([
    Type.Object({
      id: count(),
      email: Type.String(),
      plan: planId(),
      operator: Type.Boolean(),
      /** Whether it has a password. */
      password: Type.Boolean(),
      /** Whether the identity provider's person is known. */
      connected: Type.Boolean(),
    }),
    Type.Null(),
  ]),
  /** Whether strangers may make an account. */
  sign_up: Type.Boolean(),
  /** Whether people may sign in with a password. */
  passwords: Type.Boolean(),
  /** The name of the identity provider that people may sign in with. */
  provider: Type.Union([Type.String(), Type.Null()]),
  version: Type.String(),
  /** {base_url} for examples, without /v1; null where none is configured: the address that the browser itself used. */
  base_url: Type.Union([Type.String(), Type.Null()]),
  /** True where answers come from the built-in demo node and are synthetic. */
  demo: Type.Boolean(),
  /** Whether any model costs something: else credit is of no use. */
  sells: Type.Boolean(),
  /** In the order in which they are offered. */
  plans: Type.Array(Type.Object({ id: planId(), name: Type.String() })),
});
export type Session = Static<typeof Session>;

export const SignIn = Type.Object(
  { email: Type.String({ maxLength: emailMaxLength, description: "an e-mail address" }), password: knownPassword() },
  closed,
);
export type SignIn = Static<typeof SignIn>;

export const SignUp = Type.Object({ email: email(), password: newPassword() }, closed);
export type SignUp = Static<typeof SignUp>;

/** `token`: of a link that is used by it. `connect`: for the account that is signed in. `again`: signed in there or not. */
export const ProviderStart = Type.Object(
  {
    next: Type.Optional(Type.String({ maxLength: 500, description: "an address of the console" })),
    token: Type.Optional(Type.String({ maxLength: 100, description: "the token of a link" })),
    connect: Type.Optional(Type.Literal(true, { description: "true" })),
    again: Type.Optional(Type.Literal(true, { description: "true" })),
  },
  closed,
);
export type ProviderStart = Static<typeof ProviderStart>;

/** Where the browser goes on. */
export const ProviderPage = Type.Object({ url: Type.String() });
export type ProviderPage = Static<typeof ProviderPage>;

/** What the provider sent the browser back with, behind the `?`. */
export const ProviderAnswer = Type.Object(
  { query: Type.String({ maxLength: 8_192, description: "the query of an address" }) },
  closed,
);
export type ProviderAnswer = Static<typeof ProviderAnswer>;

/** Somebody is signed in now; `api_key` is that of an account that was made by it, and is shown this once. */
export const Entered = Type.Object({
  session: Session,
  api_key: Type.Union([Type.String(), Type.Null()]),
  /** The page to go on with, as the browser asked. */
  next: Type.String(),
});
export type Entered = Static<typeof Entered>;

const linkToken = () => Type.String({ maxLength: 100, description: "the token of a link" });

export const LinkToken = Type.Object({ token: linkToken() }, closed);
export type LinkToken = Static<typeof LinkToken>;

/** What a link is for. */
export const LinkShown = Type.Object({
  kind: oneOf(["invitation", "password"]),
  /** Of an invitation: the address that it is for, or null; of a password: the account's. */
  email: Type.Union([Type.String(), Type.Null()]),
  plan: planId(),
  credit: tokens(),
  expires_at: time(),
});
export type LinkShown = Static<typeof LinkShown>;

/** `email` is chosen where an invitation names none. */
export const LinkUse = Type.Object(
  { token: linkToken(), email: Type.Optional(email()), password: newPassword() },
  closed,
);
export type LinkUse = Static<typeof LinkUse>;

/** A new account of the plan free, or that an operator made; `api_key` is shown this once. A sign-up is signed in. */
export const CreatedAccount = Type.Object({
  id: count(),
  email: Type.String(),
  plan: planId(),
  api_key: Type.String(),
});
export type CreatedAccount = Static<typeof CreatedAccount>;

export const PasswordChange = Type.Object({ old_password: knownPassword(), new_password: newPassword() }, closed);
export type PasswordChange = Static<typeof PasswordChange>;

export const BrowserSessions = Type.Object({
  sessions: Type.Array(
    Type.Object({
      id: count(),
      created_at: time(),
      /** To within five minutes. */
      last_used_at: time(),
      address: Type.String(),
      /** The browser's User-Agent header, at most 200 characters. */
      browser: Type.String(),
      /** True for the session that asks. */
      current: Type.Boolean(),
    }),
  ),
});
export type BrowserSessions = Static<typeof BrowserSessions>;

// ---------------------------------------------------------------- overview and events

/** The live numbers of the account. */
export const AccountNumbers = Type.Object({
  /** Allowance left + credit - reserved; below 0 after a charge above its reservation. Null here and below: no limit. */
  spendable: nullable(tokens()),
  allowance: Type.Object({ granted: nullable(tokens()), left: nullable(tokens()), renews_at: time() }),
  credit: tokens(),
  reserved: Type.Object({ tokens: tokens(), requests: count() }),
  /** Requests whose reply has not ended, coder calls included. */
  requests_in_flight: count(),
  coder_calls: Type.Object({ left: nullable(count()), limit: nullable(count()), renews_at: time() }),
  searches: Type.Object({ left: nullable(count()), limit: nullable(count()), renews_at: time() }),
});
export type AccountNumbers = Static<typeof AccountNumbers>;

export const UsageRow = Type.Object({
  time: time(),
  request_id: Type.String(),
  endpoint: Type.String(),
  model: Type.String(),
  /** All input tokens of the model, cached ones included. */
  input: count(),
  cached_input: count(),
  output: count(),
  /** A part of output. */
  reasoning: count(),
  billed_tokens: count(),
  cost_usd: Type.Number(),
  /** True where the node gave no usable usage and the gateway counted by itself. */
  estimated: Type.Boolean(),
  /** The name of the key that it was asked by; "playground" for a signed-in browser. */
  key: Type.String(),
  /** For whom the key's program asked; null where it did not say, may not, or that was erased. */
  end_user: nullable(Type.String()),
});
export type UsageRow = Static<typeof UsageRow>;

export const Overview = Type.Object({
  plan: Type.Object({ id: planId(), name: Type.String() }),
  numbers: AccountNumbers,
  /** The last ten, newest first. */
  last_requests: Type.Array(UsageRow),
  /** What the API cost today (UTC) and in the last 30 days, today included. */
  spend: Type.Object({
    today_tokens: count(),
    today_usd: Type.Number(),
    days30_tokens: count(),
    days30_usd: Type.Number(),
  }),
});
export type Overview = Static<typeof Overview>;

export const OperatorNode = Type.Object({
  name: Type.String(),
  /** Its base address. */
  url: Type.String(),
  /** well: takes requests; cooling: it said it was busy; down: it cannot be reached; starting: our program loads. */
  health: Type.String(),
  since: time(),
  /** What is wrong with it now, in words; null where nothing is known to be. */
  problem: Type.Union([Type.String(), Type.Null()]),
  last_error: Type.Union([Type.Object({ at: time(), message: Type.String() }), Type.Null()]),
  engine: Type.String(),
  version: Type.Union([Type.String(), Type.Null()]),
  /** In tokens, the least of the models that it is asked for; null where the engine names none. */
  context_tokens: Type.Union([count(), Type.Null()]),
  /** What the engine says of each of those models; `words` may be empty. */
  abilities: Type.Array(
    Type.Object({ name: Type.String(), context_tokens: Type.Union([count(), Type.Null()]), words: Type.String() }),
  ),
  /** What of the catalog's promises that does not keep, in words. */
  below: Type.Array(Type.String()),
  /** Since when an operator wants it to get no new requests; null where nobody does. */
  drained_since: nullable(time()),
  /** Who waits for it. Requests that others serve as well stand in the line of each. */
  line: Type.Object({
    waiting: count(),
    accounts: count(),
    /** Of the request that has waited longest; null where none waits. */
    since: nullable(time()),
    /** Those with most in line first. */
    most: Type.Array(Type.Object({ id: count(), email: Type.String(), waiting: count() })),
  }),
  /** Requests it runs, of those it may run at once. */
  busy: count(),
  slots: count(),
  /** Whether these follow what its engine has to do. */
  slots_auto: Type.Boolean(),
  /** That in words, as it was said last; null where the slots do not follow it, or it is not known. */
  load: Type.Union([Type.String(), Type.Null()]),
  /** Of the replies that ended in the last ten minutes; null where none did. */
  first_token_p50_ms: nullable(count()),
  first_token_p99_ms: nullable(count()),
  /** Of the last minute. */
  tokens_per_second: Type.Number(),
  /** Public model id or "*" -> the name on the node. */
  models: Type.Record(Type.String(), Type.String()),
});
export type OperatorNode = Static<typeof OperatorNode>;

export const OperatorNodes = Type.Object({
  nodes: Type.Array(OperatorNode),
  /** Requests in line for any of them. */
  waiting: count(),
  /** Of several gateways the one whose sight it is; null: there is one. */
  gateway: nullable(Type.String()),
});
export type OperatorNodes = Static<typeof OperatorNodes>;

export const NamedNode = Type.Object(
  { name: Type.String({ minLength: 1, maxLength: 64, description: "the name of a node" }) },
  closed,
);
export type NamedNode = Static<typeof NamedNode>;

export const NodeTest = Type.Object({
  name: Type.String(),
  /** That it was asked for; null where it is asked for none. */
  model: nullable(Type.String()),
  /** Null where there was no token. */
  first_token_ms: nullable(count()),
  took_ms: count(),
  /** What went wrong, in words; null where nothing did. */
  problem: nullable(Type.String()),
});
export type NodeTest = Static<typeof NodeTest>;

/** All that may be asked for, hidden ones too. */
export const OperatorModels = Type.Object({
  models: Type.Array(
    Type.Object({
      id: Type.String(),
      aliases: Type.Array(Type.String()),
      /** Who says that it is served: the catalog, the configuration, or nodes that list it. */
      by: Type.String(),
      kind: Type.String(),
      hidden: Type.Boolean(),
      /** The names of the nodes that have it, and why none has; null where one has. */
      nodes: Type.Array(Type.String()),
      missing: nullable(Type.String()),
      /** Whether one of them takes requests now. */
      up: Type.Boolean(),
      /** US dollars per 1,000,000 tokens; null: no price is set. */
      price: Type.Union([
        Type.Object({ input: Type.Number(), cached: Type.Number(), output: Type.Number() }),
        Type.Null(),
      ]),
      context_tokens: count(),
      /** Names of the plans that may use it; null: all. */
      plans: Type.Union([Type.Array(Type.String()), Type.Null()]),
      /** What nodes lack of what it promises, in words: a line for each node. */
      below: Type.Array(Type.String()),
      /** Of this hour and the 23 before it. Of more than 100 models in an hour, those used least are not counted apart. */
      day: Type.Object({
        requests: count(),
        failed: count(),
        input: count(),
        output: count(),
        first_token_p50_ms: nullable(count()),
      }),
    }),
  ),
});
export type OperatorModels = Static<typeof OperatorModels>;

/** All accounts together. `today` counts replies that are on disk. */
export const OperatorTotals = Type.Object({
  accounts: count(),
  requests_in_flight: count(),
  reserved_tokens: count(),
  today: Type.Object({
    requests: count(),
    input: count(),
    output: count(),
    billed_tokens: count(),
    billed_usd: Type.Number(),
  }),
  pending_purchase_requests: count(),
  models: Type.Array(
    Type.Object({ model: Type.String(), requests: count(), billed_tokens: count(), served: Type.Boolean() }),
  ),
});
export type OperatorTotals = Static<typeof OperatorTotals>;

/** What changes from moment to moment; `today` of OperatorTotals is fetched. */
export const OperatorNumbers = Type.Object({
  nodes: Type.Array(OperatorNode),
  waiting: count(),
  requests_in_flight: count(),
  reserved_tokens: count(),
  /** Where several share the ledger, the two are sums over as many; else absent. */
  gateways: Type.Optional(count()),
});
export type OperatorNumbers = Static<typeof OperatorNumbers>;

/**
 * The event stream: `event:` is the name, `data:` its JSON. Both are sent at once after connecting and then when they
 * changed, at most twice a second. `ended` says that the session was ended elsewhere; the stream closes after it, and
 * an EventSource must be closed by the page. A comment line every 10 s keeps the connection alive.
 */
export type LiveEvent =
  | Readonly<{ event: "account"; data: AccountNumbers }>
  /** To operators alone. */
  | Readonly<{ event: "operator"; data: OperatorNumbers }>
  | Readonly<{ event: "ended"; data: Record<string, never> }>;

// ---------------------------------------------------------------- models and key

export const ConsoleModels = Type.Object({
  models: Type.Array(
    Type.Object({
      id: Type.String(),
      context_tokens: count(),
      reads_images: Type.Boolean(),
      structured_output: oneOf(["json_schema", "json_object", "none"]),
      /** US cents per 1,000,000 model tokens, maybe with parts of one; a flat price has three equal ones. */
      price: Type.Object({ input_cents: cents(), cached_input_cents: cents(), output_cents: cents() }),
      flat_price: Type.Boolean(),
      /** What a request may write that names no budget; null: what the balance and the context allow. */
      output_tokens: Type.Union([count(), Type.Null()]),
      /** Counted in calls on chat-completions and messages. */
      coder: Type.Boolean(),
      /** Whether the account may ask it for answers: its plan has it, and it is for that. */
      usable: Type.Boolean(),
      /** Whether some node has it, or would if it were not down, and whether one of those can take requests now. */
      served: Type.Boolean(),
      available: Type.Boolean(),
    }),
  ),
  /** For samples, also where lists leave it out; null: there is none. */
  sample: Type.Union([Type.Object({ id: Type.String(), context_tokens: count() }), Type.Null()]),
});
export type ConsoleModels = Static<typeof ConsoleModels>;

/** Only a hash of the key is kept, so that it cannot be shown again. */
export const KeyState = Type.Object({ prefix: Type.String(), ending: keyEnding(), created_at: time() });
export type KeyState = Static<typeof KeyState>;

/** The old key is void at once, so the page asks first and sends what was confirmed. */
export const KeyRegeneration = Type.Object({ confirm: Type.Literal(true, { description: "true" }) }, closed);
export type KeyRegeneration = Static<typeof KeyRegeneration>;

export const NewKey = Type.Object({ api_key: Type.String(), created_at: time() });
export type NewKey = Static<typeof NewKey>;

const keyName = () =>
  Type.String({
    minLength: 1,
    maxLength: keyNameMaxLength,
    description: `a name of 1 to ${keyNameMaxLength} characters`,
  });
const someTokens = () => Type.Integer({ minimum: 1, description: "a whole number of tokens from 1 on" });
const someTexts = (what: string) =>
  Type.Array(Type.String({ minLength: 1, maxLength: 200 }), { maxItems: keyListMax, description: `a list of ${what}` });

/** A key of the account. */
export const AccountKey = Type.Object({
  /** Number 1 is the key that every account has, "default": it is regenerated and never revoked. */
  id: count(),
  name: Type.String(),
  ending: keyEnding(),
  created_at: time(),
  /** To within a few seconds; null where it never was. */
  last_used_at: nullable(time()),
  expires_at: nullable(time()),
  expired: Type.Boolean(),
  limit_day: nullable(tokens()),
  limit_month: nullable(tokens()),
  /** Balance tokens charged today and this month (UTC); null for the first key. */
  used_day: nullable(tokens()),
  used_month: nullable(tokens()),
  /** Null where it may use all. */
  models: Type.Union([Type.Array(Type.String()), Type.Null()]),
  addresses: Type.Union([Type.Array(Type.String()), Type.Null()]),
  /** It may say for whom it asks, and each of those may use so many tokens a day. */
  forwards_users: Type.Boolean(),
  limit_end_user_day: nullable(tokens()),
});
export type AccountKey = Static<typeof AccountKey>;

export const AccountKeys = Type.Object({ keys: Type.Array(AccountKey), prefix: Type.String() });
export type AccountKeys = Static<typeof AccountKeys>;

/** What is absent is not limited. */
export const NewAccountKey = Type.Object(
  {
    name: keyName(),
    expires_at: Type.Optional(time()),
    limit_day: Type.Optional(someTokens()),
    limit_month: Type.Optional(someTokens()),
    models: Type.Optional(someTexts("models")),
    /** CIDR ranges. */
    addresses: Type.Optional(someTexts("addresses")),
    forwards_users: Type.Optional(Type.Boolean({ description: "true or false" })),
    limit_end_user_day: Type.Optional(someTokens()),
  },
  closed,
);
export type NewAccountKey = Static<typeof NewAccountKey>;

const orNone = <Schema extends TSchema>(schema: Schema) => Type.Optional(Type.Union([schema, Type.Null()]));
/** What is absent stays as it is; null lifts a limit. */
export const KeyLimits = Type.Object(
  {
    expires_at: orNone(time()),
    limit_day: orNone(someTokens()),
    limit_month: orNone(someTokens()),
    models: orNone(someTexts("models")),
    addresses: orNone(someTexts("addresses")),
    forwards_users: Type.Optional(Type.Boolean({ description: "true or false" })),
    limit_end_user_day: orNone(someTokens()),
  },
  closed,
);
export type KeyLimits = Static<typeof KeyLimits>;

/** `api_key` is shown this once. */
export const CreatedAccountKey = Type.Intersect([AccountKey, Type.Object({ api_key: Type.String() })]);
export type CreatedAccountKey = Static<typeof CreatedAccountKey>;

export const KeyName = Type.Object({ name: keyName() }, closed);
export type KeyName = Static<typeof KeyName>;

// ---------------------------------------------------------------- usage

export const UsageFilter = Type.Object(
  {
    model: Type.Optional(Type.String({ maxLength: 200 })),
    /** As a row of the list names it. */
    endpoint: Type.Optional(Type.String({ maxLength: 200 })),
    /** The number of a key, as the summary names it. */
    key: Type.Optional(Type.String({ pattern: "^[0-9]{0,15}$", description: "the number of a key" })),
    /** The whole name of an end user. */
    end_user: Type.Optional(Type.String({ maxLength: 200 })),
    /** At or after. A day such as 2026-03-28 means its first moment in UTC. */
    from: Type.Optional(time()),
    /** Before. */
    to: Type.Optional(time()),
    /**
     * A part of a model's id in any case, or the first ten or more characters of a request id or of the id of a reply
     * (behind the prefix of its dialect, as chatcmpl-). Every character stands for itself.
     */
    text: Type.Optional(Type.String({ maxLength: 200 })),
  },
  closed,
);
export type UsageFilter = Static<typeof UsageFilter>;

export const UsageQuery = Type.Object(
  {
    ...UsageFilter.properties,
    /** `next` of the page before. */
    after: Type.Optional(
      Type.String({ maxLength: 64, pattern: "^[0-9]+-[0-9A-Za-z_]+$", description: "the `next` of a page" }),
    ),
    /** At most 200; 50 where it is absent. */
    limit: Type.Optional(wholeText()),
  },
  closed,
);
export type UsageQuery = Static<typeof UsageQuery>;

/** Newest first. `next` is null on the last page. */
export const UsagePage = Type.Object({ rows: Type.Array(UsageRow), next: nullable(Type.String()) });
export type UsagePage = Static<typeof UsagePage>;

export const UsageSum = Type.Object({
  requests: count(),
  input: count(),
  cached_input: count(),
  output: count(),
  reasoning: count(),
  billed_tokens: count(),
  cost_usd: Type.Number(),
});
export type UsageSum = Static<typeof UsageSum>;

/** The last 30 days in UTC, today included. Days and models without a reply are absent from `days`. */
export const UsageSummary = Type.Object({
  from: time(),
  /** Name of a day, 2026-03-28. Ascending. */
  days: Type.Array(Type.Intersect([Type.Object({ day: Type.String(), model: Type.String() }), UsageSum])),
  days30: UsageSum,
  all_time: UsageSum,
  /** Models, endpoints and keys that the account ever used, for the filters. */
  models: Type.Array(Type.String()),
  endpoints: Type.Array(Type.String()),
  keys: Type.Array(Type.Object({ id: count(), name: Type.String(), ending: keyEnding() })),
  /**
   * For whom the account's programs asked in those days: those who cost most first, at most 50. `name` is null where it was
   * erased, and empty where a program that may name people named nobody.
   */
  end_users: Type.Array(Type.Intersect([Type.Object({ name: nullable(Type.String()), key: Type.String() }), UsageSum])),
});
export type UsageSummary = Static<typeof UsageSummary>;

// ---------------------------------------------------------------- plan, credit and payment

export const PurchaseRequest = Type.Object({
  id: count(),
  account: Type.Object({ id: count(), email: Type.String() }),
  /** One of kind deletion is approved by deleting the account. */
  kind: oneOf(["credit", "plan", "deletion"]),
  /** Of kind credit. */
  tokens: nullable(tokens()),
  /** Of kind plan. */
  plan: Type.Union([planId(), Type.Null()]),
  note: Type.String(),
  state: oneOf(["pending", "approved", "declined", "withdrawn"]),
  created_at: time(),
  decided_at: nullable(time()),
  /** What the operator said. */
  decision_note: Type.String(),
});
export type PurchaseRequest = Static<typeof PurchaseRequest>;

export const PlanPage = Type.Object({
  plan: planId(),
  plans: Type.Array(
    Type.Object({
      id: planId(),
      name: Type.String(),
      /** There is no balance; `tokens_per_day` is 0. */
      unlimited: Type.Boolean(),
      tokens_per_day: count(),
      worth_usd: Type.Number(),
      /** Null: no limit. */
      coder_calls_per_window: nullable(count()),
      searches_per_day: nullable(count()),
      requests_per_minute: nullable(count()),
      /** Its share where accounts wait for each other. */
      weight: count(),
      /** Of requests that ask for nothing, and the most urgent that one may ask for. */
      priority: oneOf(priorities),
      priority_max: oneOf(priorities),
    }),
  ),
  packs: Type.Array(Type.Object({ tokens: count(), price_usd: Type.Number() })),
  custom: Type.Object({ min_tokens: count(), max_tokens: count(), usd_per_million: Type.Number() }),
  credit: tokens(),
  /** Name of the payment provider, or null: then credit is asked for and an operator approves it. */
  payment: nullable(Type.String()),
  /** The account's last 20, newest first. */
  requests: Type.Array(PurchaseRequest),
  /** The account's last 20 payments, newest first. */
  payments: Type.Array(Type.Object({ id: Type.String(), tokens: count(), paid_at: time() })),
});
export type PlanPage = Static<typeof PlanPage>;

const purchaseTokens = () =>
  Type.Integer({
    minimum: creditPurchaseMinTokens,
    maximum: creditPurchaseMaxTokens,
    description: `a whole number of tokens from ${creditPurchaseMinTokens} to ${creditPurchaseMaxTokens}`,
  });

/** At most five may be pending. */
export const NewPurchaseRequest = Type.Union(
  [
    Type.Object({ kind: Type.Literal("credit"), tokens: purchaseTokens(), note: Type.Optional(reason()) }, closed),
    Type.Object({ kind: Type.Literal("plan"), plan: planId(), note: Type.Optional(reason()) }, closed),
  ],
  {
    description:
      `{"kind":"credit","tokens":N} with N from ${creditPurchaseMinTokens} to ${creditPurchaseMaxTokens}, ` +
      `or {"kind":"plan","plan":P} with P ${planId().description}`,
  },
);
export type NewPurchaseRequest = Static<typeof NewPurchaseRequest>;

export const Checkout = Type.Object({ tokens: purchaseTokens() }, closed);
export type Checkout = Static<typeof Checkout>;

/** The provider's page on which the browser goes on. */
export const CheckoutPage = Type.Object({ url: Type.String() });
export type CheckoutPage = Static<typeof CheckoutPage>;

// ---------------------------------------------------------------- operator

export const AccountsQuery = Type.Object(
  {
    /** A part of the e-mail, in any case; every character stands for itself. */
    search: Type.Optional(Type.String({ maxLength: emailMaxLength })),
    /** `next` of the page before. */
    after: Type.Optional(wholeText()),
    /** At most 100; 50 where it is absent. */
    limit: Type.Optional(wholeText()),
  },
  closed,
);
export type AccountsQuery = Static<typeof AccountsQuery>;

export const AccountRow = Type.Object({
  id: count(),
  email: Type.String(),
  plan: planId(),
  credit: tokens(),
  operator: Type.Boolean(),
  disabled: Type.Boolean(),
  created_at: time(),
});
export type AccountRow = Static<typeof AccountRow>;

/** In the order in which they were made. `next` is null on the last page. */
export const AccountsPage = Type.Object({ accounts: Type.Array(AccountRow), next: nullable(Type.String()) });
export type AccountsPage = Static<typeof AccountsPage>;

export const OperatorAccount = Type.Object({
  ...AccountRow.properties,
  key_created_at: time(),
  has_password: Type.Boolean(),
  /** Issuers of identity providers that the account is known to. */
  providers: Type.Array(Type.String()),
  numbers: AccountNumbers,
});
export type OperatorAccount = Static<typeof OperatorAccount>;

export const NewConsoleAccount = Type.Object(
  {
    email: email(),
    plan: Type.Optional(planId()),
    password: Type.Optional(newPassword()),
    credit: Type.Optional(
      Type.Integer({ minimum: 0, maximum: creditGrantMaxTokens, description: "a whole number of tokens" }),
    ),
    operator: Type.Optional(Type.Boolean({ description: "true or false" })),
  },
  closed,
);
export type NewConsoleAccount = Static<typeof NewConsoleAccount>;

export const PlanChange = Type.Object({ plan: planId() }, closed);
export type PlanChange = Static<typeof PlanChange>;

/** `reference` makes a repeated grant count once; a page that may be sent twice mints one. */
export const CreditGrant = Type.Object(
  {
    tokens: Type.Integer({
      minimum: 1,
      maximum: creditGrantMaxTokens,
      description: `a whole number of tokens from 1 to ${creditGrantMaxTokens}`,
    }),
    reason: Type.String({ minLength: 1, maxLength: 500, description: "a text of 1 to 500 characters" }),
    reference: Type.Optional(
      Type.String({ minLength: 1, maxLength: 100, description: "a text of 1 to 100 characters" }),
    ),
  },
  closed,
);
export type CreditGrant = Static<typeof CreditGrant>;

/** Without an address, whoever opens it chooses one. It expires after seven days unless another time is given. */
export const NewInvitation = Type.Object(
  {
    email: Type.Optional(email()),
    plan: Type.Optional(planId()),
    credit: Type.Optional(
      Type.Integer({ minimum: 0, maximum: creditGrantMaxTokens, description: "a whole number of tokens" }),
    ),
    expires_in_hours: Type.Optional(
      Type.Integer({ minimum: 1, maximum: linkMaxMs / hourMs, description: "a whole number of hours, up to 90 days" }),
    ),
  },
  closed,
);
export type NewInvitation = Static<typeof NewInvitation>;

/** `path` is below the console's address; it is shown this once. */
export const NewLink = Type.Object({ id: count(), path: Type.String(), expires_at: time() });
export type NewLink = Static<typeof NewLink>;

/** Those that may be used, the newest first; of more than 200 those. */
export const Invitations = Type.Object({
  invitations: Type.Array(
    Type.Object({
      id: count(),
      email: Type.Union([Type.String(), Type.Null()]),
      plan: planId(),
      credit: tokens(),
      created_at: time(),
      expires_at: time(),
    }),
  ),
});
export type Invitations = Static<typeof Invitations>;

/** A disabled account's key and sessions are refused. Operators cannot disable their own account. */
export const StateChange = Type.Object({ disabled: Type.Boolean({ description: "true or false" }) }, closed);
export type StateChange = Static<typeof StateChange>;

/** Ends the account's sessions. */
export const PasswordReset = Type.Object({ password: newPassword() }, closed);
export type PasswordReset = Static<typeof PasswordReset>;

/** How the owner may have the account deleted, and what became of the last request for it. */
export const DeletionState = Type.Object({
  way: oneOf(["self", "request", "off"]),
  /** What shows that it is the owner: the password, or a sign-in of the last minutes. */
  proof: oneOf(["password", "sign_in"]),
  is_fresh: Type.Boolean(),
  request: Type.Union([PurchaseRequest, Type.Null()]),
});
export type DeletionState = Static<typeof DeletionState>;

/** `confirm` is the account's e-mail, as its owner typed it. */
export const OwnDeletion = Type.Object(
  {
    confirm: Type.String({ maxLength: emailMaxLength, description: "the account's e-mail address" }),
    password: Type.Optional(knownPassword()),
  },
  closed,
);
export type OwnDeletion = Static<typeof OwnDeletion>;

/** Erases who the account was; `confirm` is its e-mail, as the operator typed it. */
export const AccountDeletion = Type.Object(
  { confirm: Type.String({ maxLength: emailMaxLength, description: "the account's e-mail address" }) },
  closed,
);
export type AccountDeletion = Static<typeof AccountDeletion>;

/** What a reload did: names of parts of the configuration. */
export const ReloadResult = Type.Object({
  time: time(),
  /** What is wrong with the configuration; then nothing has changed. */
  refused: nullable(Type.String()),
  /** Changed, and in force now. */
  applied: Type.Array(Type.String()),
  /** Other than what the server was started with, and not in force. */
  needs_restart: Type.Array(Type.String()),
});
export type ReloadResult = Static<typeof ReloadResult>;

export const BackupResult = Type.Object({
  state: oneOf(["running", "done", "failed"]),
  started_at: time(),
  file: Type.String(),
  /** 0 until it is done. */
  bytes: count(),
  duration_ms: count(),
  /** Why it failed, else empty. A backup that is done was checked: every page of it is sound. */
  message: Type.String(),
});
export type BackupResult = Static<typeof BackupResult>;

/** Files of the folder of backups, made by the console or by the schedule. */
export const BackupFile = Type.Object({ file: Type.String(), bytes: count(), made_at: time() });
export type BackupFile = Static<typeof BackupFile>;

/** Never with its address or its secret. */
export const ConsoleWebhook = Type.Object({
  name: Type.String(),
  host: Type.String(),
  format: Type.String(),
  signed: Type.Boolean(),
  events: Type.Array(Type.String()),
  /** Since the server started; `failed` are tries, `dropped` were given up. */
  sent: count(),
  failed: count(),
  dropped: count(),
  /** On their way. */
  waiting: count(),
  last_sent_at: nullable(time()),
  /** Why the last try failed; null where it did not. */
  problem: nullable(Type.String()),
});
export type ConsoleWebhook = Static<typeof ConsoleWebhook>;

export const NamedWebhook = Type.Object(
  { name: Type.String({ minLength: 1, maxLength: 64, description: "the name of a webhook" }) },
  closed,
);
export type NamedWebhook = Static<typeof NamedWebhook>;

/** `problem`: null where it was taken. */
export const WebhookTest = Type.Object({ name: Type.String(), problem: nullable(Type.String()) });
export type WebhookTest = Static<typeof WebhookTest>;

export const OperatorServer = Type.Object({
  /** Of several gateways the one that answers; null: it is the only one. */
  gateway: nullable(Type.String()),
  /** Null: there is none; flags and environment are all. */
  config_file: nullable(Type.String()),
  /** When the configuration in force was read. */
  config_loaded_at: time(),
  /** The last one that was asked for in the console since the server started. */
  reload: Type.Union([ReloadResult, Type.Null()]),
  /** Null: the ledger is in PostgreSQL, and nobody makes backups here. */
  backup_folder: nullable(Type.String()),
  /** On the disk of the ledger; null: it is in PostgreSQL, or the system does not say. */
  disk_free_bytes: Type.Union([count(), Type.Null()]),
  backup: Type.Union([BackupResult, Type.Null()]),
  /** Null: the server makes none by itself. */
  backup_schedule: Type.Union([Type.Object({ every_ms: count(), keep: count() }), Type.Null()]),
  /** The newest first, of more than 100 those. */
  backups: Type.Array(BackupFile),
  webhooks: Type.Array(ConsoleWebhook),
});
export type OperatorServer = Static<typeof OperatorServer>;

export const PurchaseRequestsQuery = Type.Object(
  {
    state: Type.Optional(oneOf(["pending", "approved", "declined", "withdrawn"])),
    kind: Type.Optional(oneOf(["credit", "plan", "deletion"])),
    after: Type.Optional(wholeText()),
    limit: Type.Optional(wholeText()),
  },
  closed,
);
export type PurchaseRequestsQuery = Static<typeof PurchaseRequestsQuery>;

/** Newest first. */
export const PurchaseRequestsPage = Type.Object({
  requests: Type.Array(PurchaseRequest),
  next: nullable(Type.String()),
});
export type PurchaseRequestsPage = Static<typeof PurchaseRequestsPage>;

export const Decision = Type.Object({ note: Type.Optional(reason()) }, closed);
export type Decision = Static<typeof Decision>;

export const AuditQuery = Type.Object({ after: Type.Optional(wholeText()), limit: Type.Optional(wholeText()) }, closed);
export type AuditQuery = Static<typeof AuditQuery>;

/** Newest first. `action` is a fixed word such as "account.plan"; `detail` is a sentence without secrets. */
export const AuditPage = Type.Object({
  entries: Type.Array(
    Type.Object({
      id: count(),
      time: time(),
      /** Empty where it was a command or the server itself; then `address` says which, and whose command it was. */
      operator: Type.String(),
      address: Type.String(),
      action: Type.String(),
      /** E-mail of the account that was acted on; empty where it was the server itself. */
      subject: Type.String(),
      detail: Type.String(),
    }),
  ),
  next: nullable(Type.String()),
});
export type AuditPage = Static<typeof AuditPage>;

// ---------------------------------------------------------------- activity

export const ActivityQuery = Type.Object(
  {
    range: oneOf(["1h", "6h", "24h", "7d", "30d", "90d"]),
    /** A series each. */
    by: oneOf(["model", "node", "account", "key"]),
  },
  closed,
);
export type ActivityQuery = Static<typeof ActivityQuery>;

/** In whole milliseconds, within 9 %; null where nothing was measured. */
const durations = () => Type.Array(Type.Union([count(), Type.Null()]));

/** One number for each step of time, the oldest first; in `total` one for all of them. */
const ActivityFigures = Type.Object({
  requests: Type.Array(count()),
  answered: Type.Array(count()),
  /** With a 4xx. */
  refused: Type.Array(count()),
  /** With a 5xx, or without an end. */
  failed: Type.Array(count()),
  /** Their clients left before the end. */
  left: Type.Array(count()),
  /** Input tokens, cached ones included. */
  input: Type.Array(count()),
  cached_input: Type.Array(count()),
  output: Type.Array(count()),
  /** For a place on a node. */
  wait_p50_ms: durations(),
  wait_p95_ms: durations(),
  /** From the arrival of the request to the first piece of its answer. */
  first_token_p50_ms: durations(),
  first_token_p95_ms: durations(),
});
export type ActivityFigures = Static<typeof ActivityFigures>;

export const ActivitySeries = Type.Object({ label: Type.String(), steps: ActivityFigures, total: ActivityFigures });
export type ActivitySeries = Static<typeof ActivitySeries>;

/** What went on over time. Days are those of UTC. */
export const ActivityPage = Type.Object({
  /** When the first step begins. */
  from: time(),
  step_ms: count(),
  all: ActivitySeries,
  /** At most six, those with most requests first; of more the last is the rest. */
  series: Type.Array(ActivitySeries),
  /** Since midnight in UTC. */
  refusals_today: Type.Array(Type.Object({ reason: Type.String(), status: count(), requests: count() })),
  /** False while the index of usage is being made: then top accounts, and what was there before the counts, follow. */
  is_complete: Type.Boolean(),
  /** At most ten, whose replies since `from`, of whole days, cost most. */
  top_accounts: Type.Array(
    Type.Object({
      id: count(),
      email: Type.String(),
      requests: count(),
      input: count(),
      output: count(),
      billed_tokens: count(),
      cost_usd: Type.Number(),
    }),
  ),
});
export type ActivityPage = Static<typeof ActivityPage>;

// ---------------------------------------------------------------- request log

const filterText = () => Type.Optional(Type.String({ maxLength: 300 }));
const logPlace = () => Type.Optional(Type.String({ pattern: "^[0-9]{1,16}-[0-9]{1,16}$", description: "a place" }));

/** All of it must fit; in an address everything is text. */
export const LogQuery = Type.Object(
  {
    /** An e-mail address, or "nobody" for requests without a known key. */
    account: filterText(),
    /** The name of one of its keys. */
    key: filterText(),
    model: filterText(),
    node: filterText(),
    endpoint: filterText(),
    /** "429", "4xx". */
    status: filterText(),
    /** One of the reasons, or "served" or "failed": without one, or with any. */
    reason: filterText(),
    from: filterText(),
    to: filterText(),
    wait_min_ms: filterText(),
    first_token_min_ms: filterText(),
    duration_min_ms: filterText(),
    tokens_min: filterText(),
    billed_min: filterText(),
    /** The beginning of a request id. */
    request_id: filterText(),
    after: logPlace(),
    /** At most 100; 50 where it is absent. */
    limit: Type.Optional(wholeText()),
  },
  closed,
);
export type LogQuery = Static<typeof LogQuery>;

const measured = () => Type.Union([count(), Type.Null()]);

export const RequestRow = Type.Object({
  /** When it ended. */
  time: time(),
  request_id: Type.String(),
  /** E-mail; null where no key was known. */
  account: nullable(Type.String()),
  account_id: Type.Union([count(), Type.Null()]),
  key: nullable(Type.String()),
  endpoint: Type.String(),
  /** Empty where the body was not read. */
  model: Type.String(),
  node: nullable(Type.String()),
  /** Of the reply's headers: one that failed in the middle has 200 and a reason. */
  status: count(),
  /** Null where it was served; `why` says it in plain words. */
  reason: nullable(Type.String()),
  why: nullable(Type.String()),
  /** What its node said of it, where that failed. */
  cause: nullable(Type.String()),
  /** For nodes, all passes together. Null, here and below: that was not measured. */
  wait_ms: measured(),
  /** From its arrival to the first node, to the first token and to its end. */
  sent_ms: measured(),
  first_token_ms: measured(),
  duration_ms: measured(),
  input: count(),
  cached_input: count(),
  output: count(),
  reasoning: count(),
  billed_tokens: count(),
  cost_usd: Type.Number(),
  /** How the balance tokens came about, at the prices of then; null where nothing was charged. */
  sum: nullable(Type.String()),
  /** Others like it, of the same minute, that have no line of their own. */
  more: count(),
});
export type RequestRow = Static<typeof RequestRow>;

/** Newest first. A page that is not full may have a next one: a search gives up after a while. */
export const LogPage = Type.Object({
  rows: Type.Array(RequestRow),
  next: nullable(Type.String()),
  /** How far back was looked, where the search gave up. */
  searched_to: nullable(time()),
  /** Refused and failed ones that are not kept, because there were too many. */
  gone: count(),
  /** What filters may choose from. */
  models: Type.Array(Type.String()),
  nodes: Type.Array(Type.String()),
  reasons: Type.Array(Type.String()),
});
export type LogPage = Static<typeof LogPage>;

export const RefusalsQuery = Type.Object({ after: logPlace(), limit: Type.Optional(wholeText()) }, closed);
export type RefusalsQuery = Static<typeof RefusalsQuery>;

/** The account's own requests that were refused or failed in the last days, newest first. */
export const RefusalsPage = Type.Object({
  rows: Type.Array(
    Type.Object({
      time: time(),
      request_id: Type.String(),
      endpoint: Type.String(),
      model: Type.String(),
      key: Type.String(),
      status: count(),
      reason: Type.String(),
      /** The reason in plain words. */
      why: Type.String(),
      more: count(),
    }),
  ),
  next: nullable(Type.String()),
});
export type RefusalsPage = Static<typeof RefusalsPage>;

/** Header of the playground's calls to /v1, which no other site can send along. */
export const consoleHeader = "x-tollgate-console";
