// GET /openapi.json, /docs and the guide: made at the first request and kept while the catalog stays. They need no key,
// and reveal nothing beyond `GET /v1/models` but the samples' model.
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import { type Catalog, usualSampleModel } from "../core/catalog.ts";
import type { OpenApiDocument } from "../docs/openapi-document.ts";
import type { Page, SiteFiles } from "../docs/page-shell.ts";
import { type ChosenForm, chooseForm, type Forms } from "./content-encoding.ts";
import type { ApiFacts } from "./openapi/description.ts";

export type DocumentationOptions = Readonly<{
  facts(): ApiFacts & Readonly<{ sampleModel: string }>;
  /** Whether the facts contain a configured address. Otherwise samples use the browser's address. */
  hasBaseUrl: boolean;
  /** The console's fonts and icon; null without a console. */
  siteFiles: (() => Promise<SiteFiles | null>) | null;
}>;

type Made = Readonly<{ description: File; reference: File; guide: ReadonlyMap<string, File> }>;
type File = Forms & Readonly<{ etag: string; headers: Readonly<Record<string, string>> }>;

const brotliQuality = 5;
const brotli = promisify(brotliCompress);
const compress = promisify(gzip);

export class Documentation {
  readonly #options: DocumentationOptions;
  #made: Promise<Made> | null = null;
  #operators: Promise<File> | null = null;
  #models: Catalog["models"] | null = null;
  #sampleModel: string = usualSampleModel;

  constructor(options: DocumentationOptions) {
    this.#options = options;
  }

  async description(request: Request): Promise<Response> {
    return this.#reply((await this.#current()).description, request);
  }

  async reference(request: Request): Promise<Response> {
    return this.#reply((await this.#current()).reference, request);
  }

  /** Null: there is no such chapter. */
  async guide(request: Request, chapter: string): Promise<Response | null> {
    const file = (await this.#current()).guide.get(chapter);
    return file === undefined ? null : this.#reply(file, request);
  }

  /** The reference of the operators' API, which is the same for as long as this program runs. */
  async operators(request: Request, describe: () => Promise<OpenApiDocument>): Promise<Response> {
    this.#operators ??= this.#operatorsPage(describe);
    return this.#reply(await this.#operators, request);
  }

  async #operatorsPage(describe: () => Promise<OpenApiDocument>): Promise<File> {
    const { referencePage } = await import("../docs/reference-page.ts");
    return pageFile(referencePage(await describe(), (await this.#options.siteFiles?.()) ?? null));
  }

  #reply(file: File, request: Request): Response {
    const { baseUrl } = this.#options.facts();
    const used = this.#options.hasBaseUrl ? null : addressUsed(request);
    if (used === null || used === baseUrl) return fileReply(file, request);
    const text = new TextDecoder().decode(file.bytes).replaceAll(baseUrl, used);
    return new Response(request.method === "HEAD" ? null : text, { headers: { ...file.headers, vary: "host" } });
  }

  #current(): Promise<Made> {
    const facts = this.#options.facts();
    const { sampleModel } = facts;
    if (this.#made === null || this.#models !== facts.catalog.models || this.#sampleModel !== sampleModel) {
      this.#models = facts.catalog.models;
      this.#sampleModel = sampleModel;
      this.#made = make(facts, sampleModel, this.#options.siteFiles).catch((error: unknown) => {
        this.#made = null;
        throw error;
      });
    }
    return this.#made;
  }
}

/** The address that the browser used; null: none. It appears in pages, so only plain names are allowed. */
function addressUsed({ headers }: Request): string | null {
  const host = headers.get("host") ?? "";
  return host.length <= hostMaxLength && /^[\w.:[\]-]+$/.test(host)
    ? (URL.parse(`http://${host}`)?.origin ?? null)
    : null;
}

const hostMaxLength = 260;

/** Loads the modules that describe and render here: a server without such requests does not read them. */
async function make(facts: ApiFacts, model: string, siteFiles: DocumentationOptions["siteFiles"]): Promise<Made> {
  const [{ describeApi }, { referencePage }, { guidePage }, { chapters }, files] = await Promise.all([
    import("./openapi/description.ts"),
    import("../docs/reference-page.ts"),
    import("../docs/guide-page.ts"),
    import("../docs/guide.ts"),
    siteFiles?.() ?? null,
  ]);
  const written = describeApi(facts);
  const { baseUrl } = facts;
  // The samples are written with one model's id, which this server may lack.
  const description = model === usualSampleModel ? written : withModel(written, model);
  const about = { name: description.info.title, baseUrl, model };
  return {
    description: await fileOf(JSON.stringify(description), {
      "content-type": "application/json; charset=utf-8",
      "access-control-allow-origin": "*",
    }),
    reference: await pageFile(referencePage(description, files)),
    guide: new Map(
      await Promise.all(
        chapters.map(async (chapter) => [chapter.id, await pageFile(guidePage(chapter, about, files))] as const),
      ),
    ),
  };
}

/** Replaces the model in every sample and example; ids that only begin alike stay. */
const withModel = <Value>(description: Value, model: string): Value =>
  JSON.parse(JSON.stringify(description).replace(/\bcore-3\b(?![.-])/g, () => model)) as Value;

const pageFile = ({ html, contentSecurityPolicy }: Page): Promise<File> =>
  fileOf(html, {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": contentSecurityPolicy,
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
  });

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
