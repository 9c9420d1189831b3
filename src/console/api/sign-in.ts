// Sign-in, sign-up, the identity provider, and links that let people in.
import { type Static, Type } from "@sinclair/typebox";
import { emailMaxLength, keyNameMaxLength } from "../../core/limits.ts";
import { mailLanguages } from "../../core/mail.ts";
import { closed, count, email, knownPassword, newPassword, nullable, oneOf, planId, time, tokens } from "./shapes.ts";

/** The account that is signed in, and what the sign-in page may offer. */
export const Session = Type.Object({
  account: nullable(
    Type.Object({
      id: count(),
      email: Type.String(),
      plan: planId(),
      operator: Type.Boolean(),
      password: Type.Boolean(),
      /** Whether it is connected with the identity provider. */
      connected: Type.Boolean(),
      /** Whether it is in a team. */
      team: Type.Boolean(),
      /** Chosen in the console; null: never, and each browser has its own. */
      language: nullable(oneOf(mailLanguages)),
    }),
  ),
  sign_up: Type.Boolean(),
  passwords: Type.Boolean(),
  /** Whether it sends mail: a forgotten password has a way back. */
  mail: Type.Boolean(),
  /** The name of the identity provider that people may sign in with. */
  provider: nullable(Type.String()),
  version: Type.String(),
  /** {base_url} for examples, without /v1; null: none is configured, and the browser uses its own address. */
  base_url: nullable(Type.String()),
  /** True: answers come from the built-in demo node and are synthetic. */
  demo: Type.Boolean(),
  /** Whether any model costs something. If none does, credit is of no use. */
  sells: Type.Boolean(),
  /** In the order in which they are offered. */
  plans: Type.Array(Type.Object({ id: planId(), name: Type.String() })),
});
export type Session = Static<typeof Session>;

export const SignIn = Type.Object(
  { email: Type.String({ maxLength: emailMaxLength, description: "an e-mail address" }), password: knownPassword() },
  closed,
);

export const SignUp = Type.Object({ email: email(), password: newPassword() }, closed);

/** `token`: of the link to use. `connect`: for the signed-in account. `again`: the provider must ask for a sign-in again. */
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

export const ProviderPage = Type.Object({ url: Type.String() });

/** What the provider added to the address, behind the `?`. */
export const ProviderAnswer = Type.Object(
  { query: Type.String({ maxLength: 8_192, description: "the query of an address" }) },
  closed,
);

/** The browser is signed in now. `api_key` belongs to an account that this created, and is shown only once. */
export const Entered = Type.Object({
  session: Session,
  api_key: nullable(Type.String()),
  /** The page that the browser asked to continue with. */
  next: Type.String(),
});
export type Entered = Static<typeof Entered>;

const linkToken = () => Type.String({ maxLength: 100, description: "the token of a link" });

export const LinkToken = Type.Object({ token: linkToken() }, closed);

export const LinkShown = Type.Object({
  kind: oneOf(["invitation", "password"]),
  /** For an invitation: the invited address, or null; for a password link: the account's address. */
  email: nullable(Type.String()),
  plan: planId(),
  credit: tokens(),
  expires_at: time(),
  /** The team that it leads into. */
  team: nullable(Type.String()),
});
export type LinkShown = Static<typeof LinkShown>;

/** `email` is for invitations that name none. */
export const LinkUse = Type.Object(
  { token: linkToken(), email: Type.Optional(email()), password: newPassword() },
  closed,
);

/** A new account; `api_key` is shown only once. A sign-up also signs the browser in. */
export const CreatedAccount = Type.Object({
  id: count(),
  email: Type.String(),
  plan: planId(),
  api_key: Type.String(),
});
export type CreatedAccount = Static<typeof CreatedAccount>;

const userCode = () => Type.String({ maxLength: 40, description: "the code that a program shows" });

export const UserCode = Type.Object({ user_code: userCode() }, closed);

/** A machine that wants to sign in. What it says of itself may be wrong. */
export const WaitingDevice = Type.Object({
  program: Type.String(),
  /** Empty where it does not say. */
  machine: Type.String(),
  /** From which it asked. */
  address: Type.String(),
  /** What its key may be called. */
  name: Type.String(),
  expires_at: time(),
});
export type WaitingDevice = Static<typeof WaitingDevice>;

export const DeviceApproval = Type.Object(
  {
    user_code: userCode(),
    name: Type.String({
      minLength: 1,
      maxLength: keyNameMaxLength,
      description: `a name of 1 to ${keyNameMaxLength} characters`,
    }),
  },
  closed,
);

/** Its key's name. */
export const ApprovedDevice = Type.Object({ name: Type.String() });
