// GET /openapi.json and GET /docs: made at the first request, then kept until the catalogue changes. Both need no key,
// and say nothing that `GET /v1/models` does not.
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import type { Catalog } from "../core/catalog.ts";
import type { SiteFiles } from "../docs/reference-page.ts";
import { type ChosenForm, chooseForm, type Forms } from "./content-encoding.ts";
import type { ApiFacts } from "./openapi/description.ts";

export type ApiReferenceOptions = Readonly<{
  facts(): ApiFacts;
  /** Where the console's fonts and icon are; null where there is no console. */
  siteFiles: (() => Promise<SiteFiles | null>) | null;
}>;

type Made = Readonly<{ json: File; page: File }>;
type File = Forms & Readonly<{ etag: string; headers: Readonly<Record<string, string>> }>;

const brotliQuality = 5;
const brotli = promisify(brotliCompress);
const compress = promisify(gzip);

export class ApiReference {
  readonly #options: ApiReferenceOptions;
  #made: Promise<Made> | null = null;
  /** Of which catalogue it tells. */
  #models: Catalog["models"] | null = null;

  constructor(options: ApiReferenceOptions) {
    this.#options = options;
  }

  async json(request: Request): Promise<Response> {
    return fileReply((await this.#current()).json, request);
  }

  async page(request: Request): Promise<Response> {
    return fileReply((await this.#current()).page, request);
  }

  #current(): Promise<Made> {
    const facts = this.#options.facts();
    if (this.#made === null || this.#models !== facts.catalog.models) {
      this.#models = facts.catalog.models;
      this.#made = make(facts, this.#options.siteFiles).catch((error: unknown) => {
        this.#made = null;
        throw error;
      });
    }
    return this.#made;
  }
}

/** What describes and renders is loaded here: a server that nobody asks for it does not read those modules. */
async function make(facts: ApiFacts, siteFiles: ApiReferenceOptions["siteFiles"]): Promise<Made> {
  const [{ describeApi }, { referencePage }, files] = await Promise.all([
    import("./openapi/description.ts"),
    import("../docs/reference-page.ts"),
    siteFiles?.() ?? null,
  ]);
  const description = describeApi(facts);
  const { html, contentSecurityPolicy } = referencePage(description, files);
  return {
    json: await fileOf(JSON.stringify(description), {
      "content-type": "application/json; charset=utf-8",
      "access-control-allow-origin": "*",
    }),
    page: await fileOf(html, {
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": contentSecurityPolicy,
      "x-frame-options": "DENY",
      "referrer-policy": "no-referrer",
    }),
  };
}

async function fileOf(text: string, headers: Readonly<Record<string, string>>): Promise<File> {
  const bytes = new TextEncoder().encode(text);
  return {
    bytes,
    brotli: await brotli(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: brotliQuality } }),
    gzip: await compress(bytes),
    etag: `"${new Bun.CryptoHasher("sha256").update(bytes).digest("base64url").slice(0, 22)}"`,
    headers: { ...headers, "cache-control": "no-cache", vary: "accept-encoding", "x-content-type-options": "nosniff" },
  };
}

function fileReply(file: File, { headers, method }: Request): Response {
  const shared = { ...file.headers, etag: file.etag };
  if (headers.get("if-none-match")?.includes(file.etag) === true) {
    return new Response(null, { status: 304, headers: shared });
  }
  const { body, encoding }: ChosenForm = chooseForm(file, headers.get("accept-encoding") ?? "");
  const encoded = encoding === null ? {} : { "content-encoding": encoding };
  return new Response(method === "HEAD" ? null : body, { headers: { ...shared, ...encoded } });
}
