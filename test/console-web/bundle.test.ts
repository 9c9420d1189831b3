// What browsers load first is small, and the page names nothing that is not there.
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { assets } from "../../src/console/assets.ts";
import { Pages } from "../../src/console/pages.ts";
import { roundUp } from "../../src/console/web/format.ts";
import { python } from "../../src/console/web/pages/playground/python-literal.ts";

/** What a user loads before the first page can be read. */
const firstLoadMaxBytes = 90_000;

describe("the console's files", () => {
  test("browsers get no schema of the contract", async () => {
    for (const [path, { bytes }] of await assets()) {
      expect([path, new TextDecoder().decode(bytes).includes("TypeBox")]).toEqual([path, false]);
    }
  });

  test("the first load of the overview, fonts and texts included, is at most 90 KB compressed", async () => {
    const files = await assets();
    const page = new TextDecoder().decode(files.get("/index.html")?.bytes);
    const named = [...page.matchAll(/(?:href|src)="(\/assets\/[^"]+)"/g)].map(([, path = ""]) => path);
    const fonts = [...files.keys()].filter((path) => /\.woff2$|\/texts-en-first-/.test(path));
    const paths = new Set(["/index.html", ...named, ...fonts, ...imports(named)]);
    for (const path of paths) expect(files.has(path), path).toBe(true);
    const total = [...paths].reduce((sum, path) => sum + (files.get(path)?.brotli.length ?? 0), 0);
    console.log(`first load: ${total} bytes in ${paths.size} files`);
    expect(total).toBeLessThan(firstLoadMaxBytes);

    function imports(of: readonly string[]): string[] {
      const scripts = of.filter((path) => path.endsWith(".js"));
      return scripts.flatMap((path) =>
        new Bun.Transpiler({ loader: "js" })
          .scanImports(new TextDecoder().decode(files.get(path)?.bytes))
          .filter(({ kind }) => kind === "import-statement")
          .map((found) => found.path),
      );
    }
  });

  test("the page's own reply names the scripts of its address, whichever page of the console it is", async () => {
    const pages = new Pages(() => {}, assets);
    const source = await Bun.file(join(import.meta.dir, "../../src/console/web/pages.ts")).text();
    const paths = [...source.matchAll(/page\(\s*"(\/[^"]*)"/g)].map(([, path = ""]) => path);
    expect(paths.length).toBeGreaterThan(18);
    for (const path of paths) {
      const named = async (signedIn: boolean) =>
        (await pages.page(new Request(`http://x${path}`), signedIn)).headers.get("link") ?? "";
      const wanted = path === "/" ? ["session", "overview", "over-time"] : ["session"];
      const addresses = (await named(true)).matchAll(/<\/console\/api\/([^>]+)>; rel=preload; as=fetch/g);
      expect([path, Array.from(addresses, ([, address]) => address)]).toEqual([path, wanted]);
      const isOfPage = (link: string): boolean => /\/chunk-(?!main-|sign-in-)[^>]+>; rel=modulepreload/.test(link);
      expect([path, isOfPage(await named(true)), isOfPage(await named(false))]).toEqual([path, path !== "/", false]);
    }
  });

  test("nothing is inline in the page, and no file names another server", async () => {
    const files = await assets();
    const page = new TextDecoder().decode(files.get("/index.html")?.bytes);
    expect(page).not.toMatch(/<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=/);
    for (const [path, { bytes, type }] of files) {
      if (!/css|html/.test(type)) continue;
      expect([path, new TextDecoder().decode(bytes).match(/https?:\/\/[^"')\s]+/g)]).toEqual([path, null]);
    }
  });

  test("every file but the page has its content's hash in its name and three forms of the same bytes", async () => {
    for (const [path, file] of await assets()) {
      expect(file.immutable, path).toBe(!["/index.html", "/preloads.txt"].includes(path));
      if (file.immutable) expect(path).toMatch(/^\/assets\/[\w-]+-[0-9a-z]{8}\.(?:js|json|css|svg|woff2)$/);
      expect(Bun.gunzipSync(new Uint8Array(file.gzip))).toEqual(new Uint8Array(file.bytes));
    }
  });
});

describe("drawing and writing", () => {
  test.each([
    [0, 1],
    [1, 1],
    [7, 8],
    [55_000, 60_000],
    [99_999, 100_000],
    [100_001, 120_000],
  ])("the axis above %d ends at %d", (value, wanted) => expect(roundUp(value)).toBe(wanted));

  test("JSON becomes a Python literal", () => {
    expect(python({ a: [true, null, 1.5, 'x"\n'], b: {} }, "")).toBe('{"a": [True, None, 1.5, "x\\"\\n"], "b": {}}');
  });
});
