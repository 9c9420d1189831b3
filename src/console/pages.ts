// The console's pages and files. Every page is the browser's app, which reads the address itself.
import { chooseForm } from "../http/content-encoding.ts";
import { requestAddress } from "../http/request-address.ts";
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

const pageHeaders = { ...safetyHeaders, "content-security-policy": contentSecurityPolicy, vary: "accept-encoding" };
/** A year: the name of an immutable file changes with its content. */
const immutable = "public, max-age=31536000, immutable";

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
    const path = requestAddress(request).pathname;
    const lineOf = (page: string) => lines.find((line) => line.startsWith(`${fileOf[page] ?? page} `));
    // A row of a list is shown by the list's file.
    const line =
      signedIn || fileOf[path] === doors ? (lineOf(path) ?? lineOf(path.slice(0, path.lastIndexOf("/")))) : undefined;
    const scripts = line?.split(" ").slice(1) ?? [];
    const data = ["/session", ...(signedIn && path === "/" ? ["/overview"] : [])];
    return [
      ...scripts.map((script) => `<${script}>; rel=modulepreload`),
      ...data.map((address) => `</console/api${address}>; rel=preload; as=fetch; crossorigin=anonymous`),
    ].join(", ");
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
    const shared = { ...pageHeaders, etag, "cache-control": asset.immutable ? immutable : "no-cache" };
    if (headers.get("if-none-match")?.includes(etag) === true)
      return new Response(null, { status: 304, headers: shared });
    const { body, encoding } = chooseForm(asset, headers.get("accept-encoding") ?? "");
    const encoded = encoding === null ? {} : { "content-encoding": encoding };
    return new Response(method === "HEAD" ? null : body, { headers: { ...shared, "content-type": type, ...encoded } });
  }
}
