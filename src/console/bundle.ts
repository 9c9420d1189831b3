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
   * browsers cannot ask for, names what pages load: all of them (`*`), by language (`de`), and each by its file (`/operator/nodes`).
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
  const [modules, classic] = await Promise.all([
    bundled(["main.tsx", "styles.css", "more.css"], "esm", kept),
    // A classic script: a module would wait until the page is parsed, and shares no file with others.
    bundled(["first.ts"], "iife", kept),
  ]);
  const texts = await textFiles(modules.first);
  const files = [...kept, ...texts.map(({ file }) => file), ...modules.files, ...classic.files];
  const paths = texts.map(({ file }) => file.path).join(" ");
  const page = withPaths((await Bun.file(join(web, "index.html")).text()).replace("{{texts}}", paths), files);
  const preloads = [
    withPaths("* {{styles.css}} {{first.js}} {{main.js}}\nmore {{more.css}}", files),
    ...texts.flatMap(({ name, file }) => (name.endsWith("-first") ? [`${name.split("-")[1]} ${file.path}`] : [])),
    modules.preloads,
  ].join("\n");
  const written = Object.entries({ "/index.html": page, "/preloads.txt": preloads }).map(([path, text]) => ({
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
): Promise<Readonly<{ files: readonly File[]; preloads: string; first: string }>> {
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
  const pathsOf = (entries: RegExp) =>
    Object.entries(made).filter(([, { entryPoint }]) => entries.test(entryPoint ?? ""));
  const lines = pathsOf(pageFile).map(([path, { entryPoint }]) =>
    [pageFile.exec(entryPoint!)![1], ...new Set(withImports(path).map(assetPath))].join(" "),
  );
  const first = new Set(pathsOf(firstFile).flatMap(([path]) => withImports(path)));
  const codes = outputs.filter(({ path }) => first.has(path)).map((output) => output.text());
  return { files: await Promise.all(files), preloads: lines.join("\n"), first: (await Promise.all(codes)).join("\n") };
}

const pageFile = /\/web\/pages(\/.+)\.tsx$/;
/** What the overview and the sign-in need. */
const firstFile = /\/web\/(?:main|pages\/sign-in)\.tsx$/;

const assetPath = (output: string): string => `/assets/${output.slice(output.lastIndexOf("/") + 1)}`;

type File = Readonly<{ path: string; bytes: Uint8Array }>;

/** `path`: of the file on the disk. */
const hashed = async (path: string): Promise<File> =>
  named(await Bun.file(path).bytes(), path.slice(path.lastIndexOf("/") + 1));

function named(bytes: Uint8Array, name: string): File {
  const hash = Bun.hash(bytes).toString(36).padStart(8, "0").slice(0, 8);
  return { path: `/assets/${name.replace(".", `-${hash}.`)}`, bytes };
}

/**
 * The texts of each language; `name` is what the page calls the file. Those of `first`, the scripts of the first page, are a
 * file of their own, so that it need not wait for the others.
 */
async function textFiles(first: string): Promise<readonly Readonly<{ name: string; file: File }>[]> {
  // `over_time.range_${range}`: every key that begins so.
  const beginnings = [...first.matchAll(/`([a-z_]+\.[a-z_]*)\$\{/g)].map(([, beginning]) => beginning!);
  const isFirst = (key: string): boolean =>
    first.includes(`"${key}"`) || beginnings.some((beginning) => key.startsWith(beginning));
  const files = new Map<string, Record<string, unknown>>();
  for (const file of (
    await Array.fromAsync(new Bun.Glob("*/{alerts,people,operators,phrases}.json").scan(languages))
  ).sort()) {
    const [language, part] = file.replace(".json", "").split("/");
    const written = (await Bun.file(join(languages, file)).json()) as Readonly<Record<string, string>>;
    for (const [key, text] of Object.entries(written)) {
      const name = `texts-${language}-${part !== "phrases" && isFirst(key) ? "first" : part === "alerts" ? "operators" : part}`;
      const texts = files.getOrInsertComputed(name, () => ({}));
      texts[key] = /[{<']/.test(text) ? new IntlMessageFormat(text, "en").getAst() : text;
    }
  }
  return Array.from(files, ([name, texts]) => ({
    name,
    file: named(new TextEncoder().encode(JSON.stringify(texts)), `${name}.json`),
  }));
}

/** Fills in `{{name.extension}}`: files are named with a hash of their content, so that browsers may keep them. */
const withPaths = (template: string, files: readonly File[]): string =>
  template.replace(/\{\{([\w-]+)\.(\w+)\}\}/g, (_, name: string, extension: string) => {
    const found = files.find(({ path }) => path.startsWith(`/assets/${name}-`) && path.endsWith(`.${extension}`));
    if (found === undefined) throw new Error(`the console names ${name}.${extension}, which its bundle lacks`);
    return found.path;
  });
