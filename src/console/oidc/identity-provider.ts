// Sign-in with an OpenID Connect provider: code flow with PKCE, state and nonce. Metadata, keys and the library are
// fetched when a person signs in, with bounds on time and size.
import type { Configuration } from "openid-client";
import { boundedText } from "../../core/bounded-text.ts";
import type { Clock } from "../../core/clock.ts";
import { hourMs } from "../../core/units.ts";
import { jsonExcess } from "../../core/outside-json.ts";
import type { Ms } from "../../core/types.ts";

/** Limit for each reply of an identity provider. */
export const providerReplyMs = 5_000;
const providerReplyMaxBytes = 512 * 1024;
/** How long a provider's metadata is used before it is fetched again. */
const providerKnownMs = hourMs;
/** Sign-ins that wait for the provider at the same time. */
const providerSignInsMax = 32;
/** How much the provider's clock may differ from ours. */
const providerClockToleranceSeconds = 60;

export type ProviderOptions = Readonly<{
  issuer: string;
  clientId: string;
  clientSecret: string | null;
  scopes: readonly string[];
  /** Where the provider sends browsers back to. */
  redirectUrl: string;
}>;

/** The secrets of a started sign-in; its browser keeps them. */
export type ProviderChecks = Readonly<{ state: string; nonce: string; verifier: string }>;

/** The provider's signed statements about a person, with unchecked values. */
export type Claims = Readonly<Record<string, unknown>>;

/** The provider is unreachable, or its answers are unusable; the message says why. */
export class ProviderAway extends Error {
  override readonly name = "ProviderAway";
}

/** Too many sign-ins at the same time. */
export class ProviderBusy extends Error {
  override readonly name = "ProviderBusy";
}

/** The answer does not match the started sign-in, or the provider refused the person; the message says why. */
export class AnswerRefused extends Error {
  override readonly name = "AnswerRefused";
}

type Library = typeof import("openid-client");
type Known = Readonly<{ library: Library; configuration: Configuration; at: Ms }>;

export class IdentityProvider {
  readonly #options: ProviderOptions;
  readonly #clock: Clock;
  #known: Known | null = null;
  #discovering: Promise<Known> | null = null;
  #finishing = 0;

  constructor(options: ProviderOptions, clock: Clock) {
    this.#options = options;
    this.#clock = clock;
  }

  /** Whether a person's issuer is this provider. */
  isOf(issuer: string): boolean {
    return new URL(issuer).href === new URL(this.#options.issuer).href;
  }

  get redirectUrl(): string {
    return this.#options.redirectUrl;
  }

  /** The page where a browser signs in; `again`: even if it is signed in there. Rejects with ProviderAway. */
  async begin(again = false): Promise<{ url: string; checks: ProviderChecks }> {
    const { library, configuration } = await this.#discovered();
    const checks = {
      state: library.randomState(),
      nonce: library.randomNonce(),
      verifier: library.randomPKCECodeVerifier(),
    };
    const url = library.buildAuthorizationUrl(configuration, {
      redirect_uri: this.#options.redirectUrl,
      scope: this.#options.scopes.join(" "),
      ...(again ? { prompt: "login" } : {}),
      state: checks.state,
      nonce: checks.nonce,
      code_challenge: await library.calculatePKCECodeChallenge(checks.verifier),
      code_challenge_method: "S256",
    });
    return { url: url.href, checks };
  }

  /** The person who came back with this query. Rejects with AnswerRefused, ProviderAway or ProviderBusy. */
  async finish(query: string, { state, nonce, verifier }: ProviderChecks, wanted: readonly string[]): Promise<Claims> {
    if (this.#finishing >= providerSignInsMax) throw new ProviderBusy("too many sign-ins at the same time");
    this.#finishing += 1;
    try {
      const { library, configuration } = await this.#discovered();
      const answer = new URL(this.#options.redirectUrl);
      answer.search = query;
      const tokens = await library.authorizationCodeGrant(configuration, answer, {
        pkceCodeVerifier: verifier,
        expectedState: state,
        expectedNonce: nonce,
        idTokenExpected: true,
      });
      const claims = tokens.claims()!;
      // The library only checks the expiry.
      if (claims.iat * 1000 > this.#clock.wall() + providerClockToleranceSeconds * 1000) {
        throw new AnswerRefused(
          "the ID token is from the future: the clock of the provider or of this machine is wrong",
        );
      }
      const lacks = wanted.some((name) => !Object.hasOwn(claims, name));
      if (!lacks || configuration.serverMetadata().userinfo_endpoint === undefined) return claims;
      const more = await library.fetchUserInfo(configuration, tokens.access_token, claims.sub);
      const { email_verified, ...others } = claims;
      // The verification belongs to the address that it came with.
      return typeof more.email === "string" ? { ...others, ...more } : { ...more, ...others, email_verified };
    } catch (thrown) {
      throw this.#meaningOf(thrown);
    } finally {
      this.#finishing -= 1;
    }
  }

  /** Fetches everything that a sign-in needs, as a check. Rejects with ProviderAway. */
  async look(): Promise<void> {
    this.#known = null;
    const { configuration } = await this.#discovered();
    const { jwks_uri, authorization_endpoint, token_endpoint } = configuration.serverMetadata();
    const lacking = Object.entries({ jwks_uri, authorization_endpoint, token_endpoint }).find(([, url]) => !url);
    if (lacking !== undefined) throw new ProviderAway(`its metadata lacks ${lacking[0]}`);
    await boundedFetch(jwks_uri!, { method: "GET" });
  }

  async #discovered(): Promise<Known> {
    if (this.#known !== null && this.#clock.monotonic() - this.#known.at < providerKnownMs) return this.#known;
    // Concurrent sign-ins share one answer.
    this.#discovering ??= this.#discover().finally(() => {
      this.#discovering = null;
    });
    return (this.#known = await this.#discovering);
  }

  async #discover(): Promise<Known> {
    const { issuer, clientId, clientSecret } = this.#options;
    const library = await import("openid-client");
    const address = new URL(issuer);
    const metadata = { [library.clockTolerance]: providerClockToleranceSeconds };
    const isPlain = address.protocol === "http:";
    try {
      const found = await library.discovery(address, clientId, metadata, undefined, {
        execute: isPlain ? [library.allowInsecureRequests] : [],
        timeout: providerReplyMs / 1000,
        [library.customFetch]: boundedFetch,
      });
      const server = found.serverMetadata();
      const methods = server.token_endpoint_auth_methods_supported ?? ["client_secret_basic"];
      const authentication =
        clientSecret === null
          ? library.None()
          : methods.includes("client_secret_basic")
            ? library.ClientSecretBasic(clientSecret)
            : library.ClientSecretPost(clientSecret);
      const configuration = new library.Configuration(server, clientId, metadata, authentication);
      library.enableNonRepudiationChecks(configuration); // the ID token's signature
      if (isPlain) library.allowInsecureRequests(configuration);
      configuration[library.customFetch] = boundedFetch;
      return { library, configuration, at: this.#clock.monotonic() };
    } catch (thrown) {
      const away = awayAmong(thrown);
      throw away ?? new ProviderAway(`its metadata is unusable: ${messageOf(thrown)}`, { cause: thrown });
    }
  }

  #meaningOf(thrown: unknown): Error {
    if (thrown instanceof AnswerRefused) return thrown;
    const away = awayAmong(thrown);
    if (away !== null) return away;
    const { error, code } = thrown as { error?: unknown; code?: unknown };
    if (code === "OAUTH_MISSING_SERVER_METADATA" || code === "OAUTH_INVALID_SERVER_METADATA") {
      return new ProviderAway(`its metadata is unusable: ${messageOf(thrown)}`, { cause: thrown });
    }
    if (error === "invalid_client" || error === "unauthorized_client") {
      return new ProviderAway(`it refuses this server's client_id and client_secret: ${error}`, {
        cause: thrown,
      });
    }
    const said = typeof error === "string" ? ` (${error.slice(0, 100)})` : "";
    return new AnswerRefused(messageOf(thrown) + said, { cause: thrown });
  }
}

function messageOf(thrown: unknown): string {
  const { message, cause } = thrown as Error;
  return cause instanceof Error && cause.message !== message ? `${message}: ${cause.message}` : message;
}

function awayAmong(thrown: unknown): ProviderAway | null {
  for (let error = thrown, depth = 0; error instanceof Error && depth < 8; error = error.cause, depth++) {
    if (error instanceof ProviderAway) return error;
  }
  return null;
}

type FetchOptions = Readonly<{
  method: string;
  headers?: Readonly<Record<string, string>>;
  body?: unknown;
}>;

/** Fetches with limits on time and size, and without redirects. Rejects with ProviderAway. */
async function boundedFetch(url: string, { method, headers = {}, body }: FetchOptions): Promise<Response> {
  const { host, pathname } = new URL(url);
  const what = `${host}${pathname}`;
  try {
    const response = await fetch(url, {
      method,
      headers,
      redirect: "manual",
      signal: AbortSignal.timeout(providerReplyMs),
      ...(body === undefined || body === null ? {} : { body: body as string | URLSearchParams }),
    });
    const { status } = response;
    // The library reads the error of a token endpoint itself.
    if (status >= 500 || status === 429 || (method === "GET" && status !== 200)) {
      await response.body?.cancel();
      throw new ProviderAway(`${what} answers with status ${status}`);
    }
    const text = await textOf(response, what);
    const excess = jsonExcess(text);
    if (excess !== null) throw new ProviderAway(`${what}: its answer ${excess}`);
    const type = response.headers.get("content-type");
    const isEmpty = status === 204 || status === 304;
    return new Response(isEmpty ? null : text, { status, headers: type === null ? {} : { "content-type": type } });
  } catch (thrown) {
    if (thrown instanceof ProviderAway) throw thrown;
    const { name, message } = thrown as Error;
    const why = name === "TimeoutError" ? `no answer within ${providerReplyMs / 1000} s` : message;
    throw new ProviderAway(`${what} cannot be reached: ${why}`, { cause: thrown });
  }
}

async function textOf(response: Response, what: string): Promise<string> {
  const text = await boundedText(response, providerReplyMaxBytes);
  if (text === null) throw new ProviderAway(`${what}: its answer is too large`);
  return text;
}
