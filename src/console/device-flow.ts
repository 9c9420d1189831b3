// What programs ask that sign in on a person's machine: metadata (RFC 8414), codes and tokens (RFC 8628, 6749), and signing out
// (RFC 7009), as Claude Code's protocol for gateways has them. Whoever asks shows a code or a token, never a cookie, so a page
// of another site gains nothing here.
import type { AnyElysia } from "elysia";
import { hashApiKey, keyHashOf } from "../account/people/keys.ts";
import { deviceCodeMs, Devices, type MachineTokens } from "../account/sign-in/devices.ts";
import { RecentTries } from "../account/sign-in/recent-tries.ts";
import type { peerAddress } from "../http/peer-address.ts";
import { StoreUnavailable } from "../core/types.ts";
import { AddressTries } from "./routes/entering.ts";
import { readBody } from "./body.ts";
import type { ConsoleParts } from "./parts.ts";
import { privateHeaders } from "./reply.ts";
import { isFailure } from "./routes/route.ts";

const pollSeconds = 5;
/** Who keeps the interval may be a little early. */
const pollMs = 4_000;
const formMaxBytes = 16_384;
const saidMaxLength = 60;
const deviceGrant = "urn:ietf:params:oauth:grant-type:device_code";

type Context = Readonly<{ request: Request; server: Parameters<typeof peerAddress>[1] }>;
type Ask = Context & Readonly<{ form: URLSearchParams }>;

export function addDeviceFlow(app: AnyElysia, parts: ConsoleParts): void {
  const { log, baseUrl } = parts;
  const flow = new DeviceFlow(parts);
  app.get("/.well-known/oauth-authorization-server", () =>
    reply({
      issuer: baseUrl,
      device_authorization_endpoint: `${baseUrl}/oauth/device_authorization`,
      token_endpoint: `${baseUrl}/oauth/token`,
      revocation_endpoint: `${baseUrl}/oauth/revoke`,
      grant_types_supported: [deviceGrant, "refresh_token"],
      response_types_supported: [],
      token_endpoint_auth_methods_supported: ["none"],
      gateway_protocol_version: 1,
    }),
  );
  for (const [path, handle] of [
    ["/oauth/device_authorization", (ask) => flow.begin(ask)],
    ["/oauth/token", (ask) => flow.token(ask)],
    ["/oauth/revoke", (ask) => flow.revoke(ask)],
  ] satisfies [string, (ask: Ask) => Promise<Response>][]) {
    const answer = async ({ request, server }: Context): Promise<Response> => {
      try {
        const text = await readBody(request, formMaxBytes);
        if (text === null) return refused("invalid_request", 413);
        return await handle({ request, server, form: new URLSearchParams(text) });
      } catch (thrown) {
        if (!(thrown instanceof StoreUnavailable)) log("error", "a sign-in failed", { path, error: String(thrown) });
        return refused("temporarily_unavailable", 503);
      }
    };
    app.post(path, (context) => answer(context as Context), { parse: "none" });
  }
}

class DeviceFlow {
  readonly #parts: ConsoleParts;
  readonly #tries = new AddressTries();
  readonly #polls = new RecentTries(1, pollMs);

  constructor(parts: ConsoleParts) {
    this.#parts = parts;
  }

  async begin({ request, server, form }: Ask): Promise<Response> {
    const { office, clock, addresses, baseUrl } = this.#parts;
    const from = addresses.of(request, server);
    const tooMany = this.#tries.begin({ ...from, visitor: null, browser: "", language: null }, clock.monotonic());
    if (isFailure(tooMany)) return refused("slow_down", 429);
    const said = { ...programOf(request, form), address: from.address };
    const begun = await office.change(({ devices }) => new Devices(devices).begin(said));
    const page = `${baseUrl}/device`;
    return reply({
      device_code: begun.deviceCode,
      user_code: begun.userCode,
      verification_uri: page,
      verification_uri_complete: `${page}?user_code=${begun.userCode}`,
      expires_in: deviceCodeMs / 1000,
      interval: pollSeconds,
    });
  }

  async token({ form }: Ask): Promise<Response> {
    const { office, machineTokens } = this.#parts;
    switch (form.get("grant_type")) {
      case deviceGrant:
        return this.#poll(form.get("device_code") ?? "");
      case "refresh_token": {
        const token = form.get("refresh_token") ?? "";
        if (token === "") return refused("invalid_request");
        return this.#granted(
          await office.change(({ devices }) => new Devices(devices).refresh(token, machineTokens)),
          "invalid_grant",
          401,
        );
      }
      case null:
        return refused("invalid_request");
      default:
        return refused("unsupported_grant_type");
    }
  }

  async #poll(code: string): Promise<Response> {
    const { office, clock, machineTokens } = this.#parts;
    if (code === "") return refused("invalid_request");
    const [known, now] = [hashApiKey(code), clock.monotonic()];
    if (this.#polls.waitMs(known, now) > 0) return refused("slow_down", 429);
    this.#polls.add(known, now);
    const state = await office.read(({ devices }) => new Devices(devices).state(code));
    if (state !== null) return refused(state);
    return this.#granted(
      await office.change(({ devices }) => new Devices(devices).issue(code, machineTokens)),
      "expired_token",
      400,
    );
  }

  /** A token that is none is signed out already. */
  async revoke({ form }: Ask): Promise<Response> {
    const token = form.get("token") ?? "";
    if (token === "") return refused("invalid_request");
    await this.#parts.office.change(({ devices }) => new Devices(devices).signOut(token, keyHashOf(token)));
    return reply({});
  }

  #granted(tokens: MachineTokens | null, error: string, status: number): Response {
    if (tokens === null) return refused(error, status);
    const { access: access_token, refresh: refresh_token, email } = tokens;
    const expires_in = Math.floor(this.#parts.machineTokens.lifeMs / 1000);
    return reply({ access_token, refresh_token, token_type: "Bearer", expires_in, email });
  }
}

/** What it says of itself: people are told that nobody checked it. */
function programOf({ headers }: Request, form: URLSearchParams): Readonly<{ program: string; machine: string }> {
  const agent = headers.get("user-agent") ?? "";
  const isClaude = form.get("surface") === "claude_code" || agent.startsWith("claude-code/");
  return {
    program: isClaude ? "Claude Code" : lineOf(form.get("client_name") ?? agent.split("/", 1)[0]!) || "A program",
    machine: lineOf(form.get("machine") ?? ""),
  };
}

const lineOf = (text: string): string =>
  text
    .replace(/[\p{C}\p{Zl}\p{Zp}]/gu, "")
    .trim()
    .slice(0, saidMaxLength);

const reply = (body: object, status = 200): Response => Response.json(body, { status, headers: privateHeaders });

const refused = (error: string, status = 400): Response => reply({ error }, status);
