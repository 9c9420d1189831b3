// A folder of files on a real disk, indexed by the real Workers: what is found, what is never touched, and that a change
// is picked up and nothing else read again.
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { systemClock } from "../../../src/core/clock.ts";
import { searchResultTextMaxLength } from "../../../src/tools/limits.ts";
import { SearchFailed } from "../../../src/tools/search/search-provider.ts";
import { searchFileMaxBytes, SearchFolderUnusable } from "../../../src/tools/search/folder-files.ts";
import { FolderSearch } from "../../../src/tools/search/folder-search.ts";
import { eventually } from "../../fixtures/eventually.ts";

setDefaultTimeout(120_000);

let root: string;
let folder: string;
let opened: FolderSearch[];
let lines: { event: string; fields: Readonly<Record<string, unknown>> }[];
beforeEach(() => {
  // macOS has a link to its temporary folder
  root = realpathSync(mkdtempSync(join(tmpdir(), "tollgate-folder-")));
  folder = join(root, "docs");
  mkdirSync(folder);
  mkdirSync(join(root, "data"));
  opened = [];
  lines = [];
});
afterEach(async () => {
  await Promise.all(opened.map((search) => search.close()));
  rmSync(root, { recursive: true, force: true });
});

/** Files are older than the time within which a file system cannot tell two changes apart. */
let age = 3_600;
function write(path: string, content: string | Uint8Array): void {
  const file = join(folder, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
  const time = Date.now() / 1000 - age;
  utimesSync(file, time, time);
}

async function open(rescanIntervalMs = 3_600_000): Promise<FolderSearch> {
  const search = await FolderSearch.open(
    { provider: "local", folder, baseUrl: "https://docs.example/base", rescanIntervalMs },
    {
      dataFolder: join(root, "data"),
      clock: systemClock,
      log: (_, event, fields = {}) => void lines.push({ event, fields }),
      // Says what it got, in the place of the reader of PDFs.
      pdfCommand: ["sh", "-c", 'echo "a pdf of $(wc -c) bytes"'],
    },
  );
  opened.push(search);
  return search;
}

const never = new AbortController().signal;
const urls = async (search: FolderSearch, query: string, resultsMax = 10): Promise<string[]> =>
  (await search.search(query, resultsMax, 1, never)).map(({ url }) => url.replace("https://docs.example/base/", ""));

describe("a folder of 1,000 files", () => {
  test("is indexed, found, and only what changed is read again", async () => {
    for (let number = 0; number < 1_000; number++) {
      write(`part-${number % 10}/file-${number}.md`, `# Report ${number}\n\nunique${number} and common words`);
    }
    const search = await open();
    expect(await search.scan()).toMatchObject({ files: 1_000, indexed: 1_000, removed: 0, skipped: 0 });
    expect(await search.search("unique777", 5, 1, never)).toEqual([
      {
        title: "Report 777",
        url: "https://docs.example/base/part-7/file-777.md",
        text: "# Report 777\n\nunique777 and common words",
      },
    ]);
    expect(await urls(search, "common", 7)).toHaveLength(7);
    expect(await search.scan()).toMatchObject({ files: 1_000, indexed: 0, removed: 0 });

    age = 1_800;
    write("part-7/file-777.md", "# Report 777\n\nrewritten");
    write("new.md", "brandnew");
    write("part-1/file-1.md", "# Report 1\n\nunique1 and common words"); // touched, and the same
    rmSync(join(folder, "part-2"), { recursive: true });
    expect(await search.scan()).toMatchObject({ files: 901, indexed: 2, removed: 100 });
    expect(await urls(search, "unique777")).toEqual([]);
    expect(await urls(search, "rewritten")).toEqual(["part-7/file-777.md"]);
    expect(await urls(search, "brandnew")).toEqual(["new.md"]);
    expect(await urls(search, "unique1")).toEqual(["part-1/file-1.md"]);
    expect(await urls(search, "unique2 unique12")).toEqual([]);

    // a restart finds everything as it was
    await search.close();
    const again = await open();
    expect(await urls(again, "rewritten")).toEqual(["part-7/file-777.md"]);
    expect(await again.scan()).toMatchObject({ files: 901, indexed: 0, removed: 0 });
  });

  test("answers while it is being indexed, and stops in the middle when it is closed", async () => {
    for (let number = 0; number < 1_000; number++) write(`${number}.txt`, `word ${"filling ".repeat(2_000)}`);
    const search = await open();
    const scan = search.scan();
    expect(Array.isArray(await search.search("word", 3, 1, never))).toBe(true);
    await search.close();
    await scan;
    const again = await open();
    const { files, indexed } = await again.scan();
    expect(files).toBe(1_000);
    expect(indexed).toBeLessThanOrEqual(1_000);
    expect(await urls(again, "word", 3)).toHaveLength(3);
  });
});

describe("what a folder may hold", () => {
  test("kinds of files, each with its text and title", async () => {
    write("page.html", "<title>A page</title><script>zscript</script><p>alpha &amp; beta");
    write("front.md", '---\ntitle: "From the front"\ntags: [x]\n---\n# Heading\n\nalpha');
    write("notes.TXT", "alpha in capitals");
    write("paper.pdf", new Uint8Array(1_234));
    write("picture.png", "alpha");
    write("page.html.bak", "alpha");
    const search = await open();
    await search.scan();
    const found = await search.search("alpha", 10, 1, never);
    expect(found.map(({ title }) => title).toSorted()).toEqual(["A page", "From the front", "notes"]);
    expect(await urls(search, "zscript")).toEqual([]);
    const [paper] = await search.search("pdf 1234", 1, 1, never);
    expect(paper).toMatchObject({ title: "paper", text: "a pdf of 1234 bytes" });
  });

  test("names of any kind, whose addresses are addresses", async () => {
    const names = [
      "a b?c#d%20.md",
      "ünïcode 東京.md",
      "new\nline.md",
      '"quotes" & <tags>.md',
      "..dots..md",
      "-rf.md",
      "%2e%2e.md",
    ];
    for (const name of names) write(`sub folder/${name}`, "zebra");
    const search = await open();
    await search.scan();
    const found = await search.search("zebra", 20, 1, never);
    const paths = found.map(({ url }) => decodeURIComponent(new URL(url).pathname));
    // a name that begins with a dot is hidden
    const visible = names.filter((name) => !name.startsWith("."));
    expect(paths.toSorted()).toEqual(visible.map((name) => `/base/sub folder/${name}`).toSorted());
  });

  test("nothing hidden, and nothing that a link points to", async () => {
    const outside = join(root, "outside");
    mkdirSync(outside);
    writeFileSync(join(outside, "secret.md"), "zsecret");
    write("real.md", "zreal");
    write(".hidden/a.md", "zsecret");
    write(".env.md", "zsecret");
    write("node_modules/a.md", "zsecret");
    symlinkSync(outside, join(folder, "link-to-folder"));
    symlinkSync(join(outside, "secret.md"), join(folder, "link.md"));
    symlinkSync("/etc/passwd", join(folder, "passwd.txt"));
    symlinkSync(folder, join(folder, "loop"));
    symlinkSync("nowhere", join(folder, "broken.md"));
    expect(Bun.spawnSync(["mkfifo", join(folder, "pipe.md")]).exitCode).toBe(0);
    const search = await open();
    expect(await search.scan()).toMatchObject({ files: 1, indexed: 1 });
    expect(await urls(search, "zsecret root zreal")).toEqual(["real.md"]);

    // a file that was indexed is a link by the next scan
    rmSync(join(folder, "real.md"));
    symlinkSync(join(outside, "secret.md"), join(folder, "real.md"));
    expect(await search.scan()).toMatchObject({ files: 0, removed: 1 });
    expect(await urls(search, "zsecret zreal")).toEqual([]);
  });

  test("files that are too large, empty, no text or wrong in their encoding", async () => {
    write("huge.md", "");
    truncateSync(join(folder, "huge.md"), searchFileMaxBytes + 1); // a hole: it takes no room
    write("empty.md", "");
    write("binary.txt", new Uint8Array([1, 2, 0, 3]));
    write("latin1.txt", Buffer.from("caf\xe9 zebra", "latin1"));
    write("utf16.txt", Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from("zebra größer", "utf16le")]));
    write("bom.txt", "\ufeffzebra");
    const search = await open();
    const result = await search.scan();
    expect(result).toMatchObject({ files: 6, indexed: 3, skipped: 3 });
    expect(result.skippedFiles.toSorted((a, b) => (a.path < b.path ? -1 : 1))).toEqual([
      { path: "binary.txt", reason: "no text can be read from it", isNew: true },
      { path: "empty.md", reason: "no text can be read from it", isNew: true },
      { path: "huge.md", reason: "it is too large", isNew: true },
    ]);
    expect((await urls(search, "zebra")).toSorted()).toEqual(["bom.txt", "latin1.txt", "utf16.txt"]);
    expect(await urls(search, "größer")).toEqual(["utf16.txt"]);
    // told once, not at each scan
    const again = await search.scan();
    expect([again.skipped, again.skippedFiles.map(({ isNew }) => isNew)]).toEqual([3, [false, false, false]]);
    expect(lines.filter(({ event }) => event === "a file was not indexed")).toHaveLength(3);
  });

  test("a long text, of which the passage that fits is read", async () => {
    const filling = Array.from({ length: 500 }, (_, index) => `Paragraph ${index} ${"of filling ".repeat(40)}`);
    filling[321] = "The needle is here.";
    write("book.md", filling.join("\n\n"));
    write("line.txt", `${"😀".repeat(5_000)} needle ${"x".repeat(5_000)}`);
    const search = await open();
    await search.scan();
    const book = (await search.search("needle", 2, 1, never)).find(({ url }) => url.endsWith("book.md"))!;
    expect(book.text).toContain("The needle is here.");
    expect(book.text.length).toBeLessThanOrEqual(searchResultTextMaxLength);
    expect((await urls(search, "needle")).toSorted()).toEqual(["book.md", "line.txt"]);
  });

  test("a file that changed just now is read again, even if its time and size did not change", async () => {
    const file = join(folder, "a.md");
    const now = Date.now() / 1000;
    writeFileSync(file, "first");
    utimesSync(file, now, now);
    const search = await open();
    await search.scan();
    writeFileSync(file, "other");
    utimesSync(file, now, now);
    await search.scan();
    expect([await urls(search, "first"), await urls(search, "other")]).toEqual([[], ["a.md"]]);
  });
});

describe("the folder's search", () => {
  test("keeps itself up to date", async () => {
    write("a.md", "first");
    const search = await open(50);
    void search.keepFresh();
    await eventually("the first file is found", async () => (await urls(search, "first")).length === 1);
    write("b.md", "second");
    await eventually("the new file is found", async () => (await urls(search, "second")).length === 1);
    rmSync(join(folder, "a.md"));
    await eventually("the old file is not", async () => (await urls(search, "first")).length === 0);
  });

  test("keeps what it has while the folder is away", async () => {
    write("a.md", "first");
    const search = await open();
    await search.scan();
    rmSync(folder, { recursive: true });
    await search.keepFresh();
    expect(lines.map(({ event }) => event)).toContain("the search index could not be updated");
    expect(await urls(search, "first")).toEqual(["a.md"]);
  });

  test("of a folder that is not there does not start", async () => {
    rmSync(folder, { recursive: true });
    expect(open()).rejects.toThrow(SearchFolderUnusable);
  });

  test("gives nothing to a client that left", async () => {
    const search = await open();
    await search.scan();
    expect(search.search("a", 1, 1, AbortSignal.abort())).rejects.toThrow(SearchFailed);
  });

  test("answers accounts in turn, however many queries one of them has", async () => {
    write("a.md", "first");
    const search = await open();
    await search.scan();
    const answered: number[] = [];
    const ask = (account: number) => search.search("first", 1, account, never).then(() => answered.push(account));
    await Promise.all([...Array.from({ length: 100 }, () => ask(1)), ask(2)]);
    expect(answered).toHaveLength(101);
    expect(answered.indexOf(2)).toBeLessThan(3);
  });

  test("leaves no files beside its index, and none open, when it is closed", async () => {
    write("a.md", "first");
    const search = await open();
    await search.scan();
    await search.search("first", 1, 1, never);
    await search.close();
    expect(readdirSync(join(root, "data"))).toEqual(["search.db"]);
    expect(search.search("first", 1, 1, never)).rejects.toThrow(SearchFailed);
  });
});
