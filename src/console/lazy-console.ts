// The console's addresses. The console itself loads with their first request: a tenth of a start's time and 6 MB.
import { Elysia } from "elysia";
import type { Site } from "../http/site.ts";
import { assets } from "./assets.ts";

/** Addresses that serve the browser's app; its router knows the same ones. */
export const pagePaths = [
  "/",
  "/sign-in",
  "/sign-in/callback",
  "/join",
  "/set-password",
  "/forgotten",
  "/confirm-mail",
  "/unsubscribe",
  "/playground",
  "/batch", // clients may ask for /batches
  "/usage",
  "/reports",
  "/key",
  "/device",
  "/plan",
  "/team",
  "/account",
  "/operator",
  "/operator/*",
] as const;

/** What programs ask that sign in (device-flow.ts). */
const deviceFlow = [
  ["GET", "/.well-known/oauth-authorization-server"],
  ["POST", "/oauth/device_authorization"],
  ["POST", "/oauth/token"],
  ["POST", "/oauth/revoke"],
] as const;

/** Where mail programs end mails of a kind. */
export const mailPath = "/console/mail/unsubscribe";

/** The path of a payment provider's calls. */
export const webhookPath = (provider: string): string => `/console/webhooks/${provider}`;

/** `open` is called again after a failure; `payment` is the name of the configured provider. */
export function lazyConsole(open: () => Promise<Site>, payment: string | null): Site {
  let site: Site | null = null;
  let opening: Promise<Site> | null = null;
  const opened = (): Promise<Site> =>
    (opening ??= open().then(
      (console) => (site = console),
      (error: unknown) => {
        opening = null;
        throw error;
      },
    ));
  const app = new Elysia({ normalize: false, aot: true });
  const answer = async (request: Request, server: typeof app.server): Promise<Response> => {
    const { routes } = site ?? (await opened());
    routes.server = server; // knows the client's address
    return routes.handle(request);
  };
  app.all("/console/api/*", ({ request, server }) => answer(request, server), { parse: "none" });
  for (const [method, path] of [...deviceFlow, ["GET", mailPath] as const, ["POST", mailPath] as const]) {
    app.route(method, path, ({ request, server }) => answer(request, server), { parse: "none" });
  }
  if (payment !== null) {
    app.post(webhookPath(payment), ({ request, server }) => answer(request, server), { parse: "none" });
  }
  for (const path of [...pagePaths, "/assets/*"]) {
    app.get(path, ({ request, server }) => {
      assets().catch(() => {}); // bundled while the console is loaded; the answer reports a failure
      return answer(request, server);
    });
  }
  return {
    routes: app,
    accountOf: (request) =>
      site === null ? opened().then((console) => console.accountOf(request)) : site.accountOf(request),
    close: () => site?.close(),
  };
}
