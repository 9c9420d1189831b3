// The console's pages and files. Every page is the browser's app, which reads the address itself.
import { chooseForm } from "../http/content-encoding.ts";
import { requestAddress } from "../http/request-address.ts";
import { mailLanguageOf } from "../core/mail.ts";
import type { Log } from "../core/log.ts";
import type { Asset } from "./assets.ts";
import { safetyHeaders } from "./reply.ts";

/** Nothing loads from elsewhere, no inline script runs, and no other site can frame the console. */
const contentSecurityPolicy = [
  "default-src 'self'",
  "object-src 'none'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  // The app only draws elements, so that HTML from a string is always a mistake, and is refused.
  "require-trusted-types-for 'script'",
].join("; ");

const pageHeaders = { ...safetyHeaders, "content-security-policy": contentSecurityPolicy };
/** A year: the name of an immutable file changes with its content. */
const immutable = "public, max-age=31536000, immutable";

const apiAddress = (path: string): string => `/console/api${path}`;
const relationOf = (address: string): string => {
  if (address.endsWith(".css")) return "preload; as=style";
  if (address.startsWith("/assets/first-")) return "preload; as=script"; // the only one that is no module
  return address.endsWith(".js") ? "modulepreload" : "preload; as=fetch; crossorigin=anonymous";
};

/** Pages that strangers are led to. */
const doors = "/door-pages";

/** Pages whose file has another name than their address; the overview is in the first script. */
const fileOf: Readonly<Record<string, string>> = {
  "/batch": "/batches",
  "/playground": "/playground/page",
  "/operator": "/operator/activity",
  "/sign-in/callback": doors,
  "/join": doors,
  "/set-password": doors,
};

export class Pages {
  readonly #log: Log;
  readonly #assets: () => Promise<ReadonlyMap<string, Asset>>;

  constructor(log: Log, assets: () => Promise<ReadonlyMap<string, Asset>>) {
    this.#log = log;
    this.#assets = assets;
  }

  /** `signedIn`: the browser may ask for what only accounts get. */
  async page(request: Request, signedIn: boolean): Promise<Response> {
    const reply = await this.#serve("/index.html", request);
    if (reply.ok || reply.status === 304) reply.headers.set("link", await this.#early(request, signedIn));
    return reply;
  }

  /** What the page will ask for, named with the page itself: on a slow network each answer waited for takes half a second. */
  async #early(request: Request, signedIn: boolean): Promise<string> {
    const lines = new TextDecoder().decode((await this.#assets()).get("/preloads.txt")?.bytes).split("\n");
    const filesOf = (name: string): string[] =>
      (lines.find((line) => line.startsWith(`${name} `)) ?? name).split(" ").slice(1);
    const path = requestAddress(request).pathname;
    const isShown = signedIn || fileOf[path] === doors;
    // A row of a list is shown by the list's file.
    const ofPage = [path, path.slice(0, path.lastIndexOf("/"))].map((page) => filesOf(fileOf[page] ?? page));
    const isOverview = signedIn && path === "/";
    const language = mailLanguageOf(request.headers.get("accept-language")) ?? "en";
    // Browsers open six connections: what the first drawing waits for comes first.
    const wanted = new Set([
      ...filesOf("*"),
      ...filesOf(language),
      ...["/session", ...(isOverview ? ["/overview"] : [])].map(apiAddress),
      ...(signedIn && !isOverview ? filesOf("more") : []),
      ...(isShown ? (ofPage.find(({ length }) => length > 0) ?? []) : filesOf("/sign-in")),
      ...(isOverview ? [apiAddress("/over-time")] : []),
    ]);
    return Array.from(wanted, (address) => `<${address}>; rel=${relationOf(address)}`).join(", ");
  }

  file(request: Request): Promise<Response> {
    return this.#serve(requestAddress(request).pathname, request);
  }

  async #serve(path: string, { headers, method }: Request): Promise<Response> {
    let asset: Asset | undefined;
    try {
      asset = (await this.#assets()).get(path);
    } catch (error) {
      this.#log("error", "the console's pages cannot be built", { reason: String(error) });
      return new Response("The console cannot be shown.\n", { status: 500, headers: pageHeaders });
    }
    if (asset === undefined) return new Response("There is no such file.\n", { status: 404, headers: pageHeaders });
    const { type, etag } = asset;
    // What a page loads needs no policy of its own, and on a slow network a dozen policies are felt.
    const shared = asset.immutable
      ? { "x-content-type-options": "nosniff", etag, "cache-control": immutable, vary: "accept-encoding" }
      : { ...pageHeaders, etag, "cache-control": "no-cache", vary: "accept-encoding" };
    if (headers.get("if-none-match")?.includes(etag) === true)
      return new Response(null, { status: 304, headers: shared });
    const { body, encoding } = chooseForm(asset, headers.get("accept-encoding") ?? "");
    const encoded = encoding === null ? {} : { "content-encoding": encoding };
    return new Response(method === "HEAD" ? null : body, { headers: { ...shared, "content-type": type, ...encoded } });
  }
}
