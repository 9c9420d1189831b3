// A real OpenID Connect provider as a process, for tests in a browser: whoever types an address is that person. What it
// says of a person follows from the address; `POST /control` takes one of its addresses away.

const { default: Provider } = await import("oidc-provider" as string); // it has no types

const [port = "0"] = process.argv.slice(2);

/** `unverified@...` is not verified, `nobody@...` has no address, `staff...@...` is in the group staff. */
function claimsOf(login: string): { sub: string; [name: string]: unknown } {
  const sub = `person of ${login}`;
  if (login.startsWith("nobody@")) return { sub };
  return {
    sub,
    email: login,
    email_verified: !login.startsWith("unverified@"),
    groups: login.startsWith("staff") ? ["people", "staff"] : ["people"],
  };
}

const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [
    {
      client_id: "tollgate",
      client_secret: "a secret of thirty-two characters",
      redirect_uris: ["http://127.0.0.1/sign-in/callback"],
      response_types: ["code"],
      grant_types: ["authorization_code"],
    },
  ],
  claims: { openid: ["sub"], email: ["email", "email_verified"], groups: ["groups"] },
  features: { devInteractions: { enabled: true } },
  pkce: { required: () => true },
  cookies: { keys: ["of tests"] },
  findAccount: (_: unknown, login: string) => ({ accountId: login, claims: () => claimsOf(login) }),
});

// Of a gateway on any port.
Object.assign(provider.Client.prototype, {
  redirectUriAllowed: (uri: string) => new URL(uri).pathname === "/sign-in/callback",
});

/** A path that answers with 503; empty: none. */
let away = "";
type Context = { path: string; query: Record<string, unknown>; body: string; status: number };
provider.use(async (context: Context, next: () => Promise<void>) => {
  if (context.path === "/control") {
    away = String(context.query["away"] ?? "");
    context.body = "done";
  } else if (away !== "" && context.path.startsWith(away)) {
    context.status = 503;
    context.body = "away";
  } else await next();
});
provider.listen(Number(port), "127.0.0.1", () => console.log("listening"));
