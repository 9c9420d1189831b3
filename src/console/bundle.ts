// Bundles the console's browser side: when run from source, at the first request for a page; for the binary, at build time.
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants } from "node:zlib";
import { IntlMessageFormat } from "intl-messageformat";

const web = join(import.meta.dir, "web");
const languages = join(import.meta.dir, "../../data/languages");

export type EmbeddedFile = Readonly<{
  /**
   * Path below the site's root, e.g. `/assets/main-1a2b3c.js`; `/index.html` is the page itself, and `/preloads.txt`, which
   * browsers cannot ask for, has a line for each page: the name of its file (`/operator/nodes`) and its scripts.
   */
  path: string;
  type: string;
  /** The content, compressed with brotli and written in base64. */
  brotliBase64: string;
}>;

export type BundledFile = Readonly<{ path: string; type: string; bytes: Uint8Array; brotli: Uint8Array }>;

type BundleOptions = Readonly<{
  /** 11 saves a few percent and takes half a second: right for a build, not for a start. */
  brotliQuality: number;
}>;

const types: Readonly<Record<string, string>> = {
  css: "text/css; charset=utf-8",
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  json: "application/json; charset=utf-8",
  txt: "text/plain; charset=utf-8",
  svg: "image/svg+xml",
  woff2: "font/woff2",
};

/** A font inside the style sheet would need `data:` in the content security policy. */
const keptAsTheyAre = ["fonts/inter.woff2", "fonts/jetbrains-mono.woff2", "icon.svg"];

const compress = promisify(brotliCompress);

/** All files of the console. Rejects with the bundler's messages if a source does not compile. */
export async function bundleConsole({ brotliQuality }: BundleOptions): Promise<BundledFile[]> {
  const kept = await Promise.all(keptAsTheyAre.map((file) => hashed(join(web, file))));
  const texts = await textFiles();
  const [modules, classic] = await Promise.all([
    bundled(["main.tsx", "styles.css"], "esm", kept),
    // A classic script: a module would wait until the page is parsed, and shares no file with others.
    bundled(["first.ts"], "iife", kept),
  ]);
  const files = [...kept, ...texts, ...modules.files, ...classic.files];
  const named = texts.map(({ path }) => path).join(" ");
  const page = withPaths((await Bun.file(join(web, "index.html")).text()).replace("{{texts}}", named), files);
  const written = Object.entries({ "/index.html": page, "/preloads.txt": modules.preloads }).map(([path, text]) => ({
    path,
    bytes: new TextEncoder().encode(text),
  }));
  return Promise.all(
    [...written, ...files].map(async ({ path, bytes }) => ({
      path,
      type: types[path.slice(path.lastIndexOf(".") + 1)] ?? "application/octet-stream",
      bytes,
      brotli: await compress(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: brotliQuality } }),
    })),
  );
}

async function bundled(
  entries: readonly string[],
  format: "esm" | "iife",
  kept: readonly File[],
): Promise<Readonly<{ files: readonly File[]; preloads: string }>> {
  const { outputs, metafile } = await Bun.build({
    entrypoints: entries.map((file) => join(web, file)),
    root: web,
    target: "browser",
    format,
    splitting: format === "esm",
    minify: true,
    metafile: true,
    publicPath: "/assets/",
    naming: { entry: "[name]-[hash].[ext]", chunk: "chunk-[name]-[hash].[ext]" },
    // A developer's environment must not change what browsers get.
    define: { "process.env.NODE_ENV": JSON.stringify("production") },
    external: ["/assets/*"],
    plugins: [
      {
        name: "addresses of the files kept as they are",
        setup(build) {
          build.onLoad({ filter: /\.css$/ }, async ({ path }) => ({
            contents: withPaths(await Bun.file(path).text(), kept),
            loader: "css",
          }));
        },
      },
      {
        name: "texts that are taken apart already",
        setup(build) {
          const parser = "@formatjs/icu-messageformat-parser";
          build.onResolve({ filter: new RegExp(`^${parser}$`) }, ({ importer }) => ({
            path: Bun.resolveSync(`${parser}/no-parser.js`, dirname(importer)),
          }));
        },
      },
    ],
  });
  const files = outputs
    .filter(({ size }) => size > 0)
    .map(async (output) => ({ path: assetPath(output.path), bytes: new Uint8Array(await output.arrayBuffer()) }));
  const made = metafile?.outputs ?? {};
  /** An output and all that it imports at once. */
  const withImports = (path: string): string[] => [
    path,
    ...(made[path]?.imports ?? []).flatMap((found) =>
      found.kind === "import-statement" && found.path !== path ? withImports(found.path) : [],
    ),
  ];
  const lines = Object.entries(made).flatMap(([path, { entryPoint }]) => {
    const [, page] = /\/web\/pages(\/.+)\.tsx$/.exec(entryPoint ?? "") ?? [];
    return page === undefined ? [] : [[page, ...new Set(withImports(path).map(assetPath))].join(" ")];
  });
  return { files: await Promise.all(files), preloads: lines.join("\n") };
}

const assetPath = (output: string): string => `/assets/${output.slice(output.lastIndexOf("/") + 1)}`;

type File = Readonly<{ path: string; bytes: Uint8Array }>;

/** `path`: of the file on the disk. */
const hashed = async (path: string): Promise<File> =>
  named(await Bun.file(path).bytes(), path.slice(path.lastIndexOf("/") + 1));

function named(bytes: Uint8Array, name: string): File {
  const hash = Bun.hash(bytes).toString(36).padStart(8, "0").slice(0, 8);
  return { path: `/assets/${name.replace(".", `-${hash}.`)}`, bytes };
}

/** The texts of each language. */
async function textFiles(): Promise<readonly File[]> {
  const found = await Array.fromAsync(new Bun.Glob("*/{people,operators,phrases}.json").scan(languages));
  return Promise.all(
    found.sort().map(async (file) => {
      const name = `texts-${file.replace("/", "-").replace(".json", "")}`;
      const read = async (path: string): Promise<object> => Bun.file(join(languages, path)).json();
      const isOperators = file.endsWith("operators.json");
      const alerts = isOperators ? await read(file.replace("operators", "alerts")) : {};
      const written: Readonly<Record<string, string>> = { ...alerts, ...(await read(file)) };
      const texts = Object.entries(written).map(([key, text]) => [
        key,
        /[{<']/.test(text) ? new IntlMessageFormat(text, "en").getAst() : text,
      ]);
      return named(new TextEncoder().encode(JSON.stringify(Object.fromEntries(texts))), `${name}.json`);
    }),
  );
}

/** Fills in `{{name.extension}}`: files are named with a hash of their content, so that browsers may keep them. */
const withPaths = (template: string, files: readonly File[]): string =>
  template.replace(/\{\{([\w-]+)\.(\w+)\}\}/g, (_, name: string, extension: string) => {
    const found = files.find(({ path }) => path.startsWith(`/assets/${name}-`) && path.endsWith(`.${extension}`));
    if (found === undefined) throw new Error(`the console names ${name}.${extension}, which its bundle lacks`);
    return found.path;
  });
