// The readable text of real pages: well made, badly made, and made to harm.
import { describe, expect, test } from "bun:test";
import { pageText } from "../../../src/tools/media/page-text.ts";

const text = async (html: string, lengthMax = 10_000): Promise<string> => (await pageText(html, lengthMax)).text;

describe("the text of a page", () => {
  test("has its title and paragraphs, lists and lines, and none of its scripts, styles and navigation", async () => {
    const page = `<!doctype html><html><head><title> Tom &amp;
        Jerry </title><style>p { color: red }</style><script>document.write("<p>no</p>")</script></head>
      <body><header>Head</header><nav><a href="/">Home</a></nav><h1>One</h1><p>First <b>bold</b>, then<br>a line.<p>Second
      &eacute;&#233;&#xe9;<ul><li>a<li>b</ul><table><tr><td>x</td><td>y</td></tr></table>
      <noscript>Turn it on</noscript><svg><title>icon</title><text>drawn</text></svg><!-- note -->
      <div hidden>secret</div><p aria-hidden="true">secret</p><p>After it.</p><form>Search <input></form><footer>Imprint</footer></body></html>`;
    expect(await pageText(page, 10_000)).toEqual({
      title: "Tom & Jerry",
      text: "Head\n\nOne\n\nFirst bold, then\na line.\nSecond éé\u00e9\n\n- a\n- b\n\nx y\n\nAfter it.",
    });
  });

  test("is the main part where the page marks one that holds something", async () => {
    const long = "What the page is about. ".repeat(20);
    expect(await text(`<p>Beside</p><main><p>${long}</p></main><p>Below</p>`)).toBe(long.trim());
    expect(await text("<p>Beside the point, and more of it</p><main></main>")).toBe("Beside the point, and more of it");
  });

  test("keeps the lines and indentation of code", async () => {
    expect(await text("<p>Code:</p><pre>if x:\n    y()\n</pre>")).toBe("Code:\n\nif x:\n    y()");
  });

  test("is cut where it is longer than wanted, but not within a character", async () => {
    expect(await text("<p>abcdef", 3)).toBe("abc");
    expect(await text("<p>ab😀", 3)).toBe("ab\ufffd");
  });

  test.each([
    ["nothing", "", ""],
    ["no tags", "just words", "just words"],
    ["elements that are not closed", "<div><p>one<div>two", "one\ntwo"],
    ["navigation that is not closed", "<p>one<nav>two<p>three", "one"],
    ["what only looks like a tag", "<p>1 < 2 && 3 > 2</p>", "1 < 2 && 3 > 2"],
    ["NUL", "<p>a\0b", "a\0b"],
  ])("%s", async (_, html, expected) => {
    expect(await text(html)).toBe(expected);
  });

  test("of hostile documents comes in time, if any", async () => {
    const hostile = [
      "<div>".repeat(200_000),
      "<nav>".repeat(200_000),
      "<".repeat(1_000_000),
      `<p ${"a ".repeat(500_000)}`,
      `<pre>${" ".repeat(1_000_000)}x${"\n".repeat(1_000_000)}y</pre>`,
      `<p>${"&".repeat(1_000_000)}`,
      `<p>${"&#1;".repeat(300_000)}`,
      `<title>${"x".repeat(1_000_000)}</title>`,
    ];
    for (const html of hostile) expect((await text(html, 1_000)).length).toBeLessThanOrEqual(1_000);
  }, 120_000);

  test("is read in slices, so that timers go on meanwhile", async () => {
    let turns = 0;
    const timer = setInterval(() => turns++, 0);
    await text(`<nav>${"<p>some words of a menu</p>".repeat(50_000)}</nav>`);
    clearInterval(timer);
    expect(turns).toBeGreaterThan(5);
  });
});

describe("character references", () => {
  test.each([
    ["a&amp;&lt;&gt;&quot;&apos;&nbsp;a", "a&<>\"' a"],
    ["&eacute;&Auml;&szlig;&yuml;&iexcl;", "éÄßÿ¡"],
    ["&mdash;&hellip;&euro;&rarr;&checkmark;&nrightarrow;", "—…€→✓↛"],
    ["&#65;&#x41;&#X1F600;&#150;", "AA😀–"],
    ["&#0;&#xD800;&#x110000;", "\ufffd\ufffd\ufffd"],
    ["&unknown; &amp &; &#; &#x; AT&T &copy2026", "&unknown; & &; &#; &#x; AT&T ©2026"], // as browsers do
  ])("%s", async (written, read) => {
    expect(await text(`<p>${written}</p>`)).toBe(read);
  });
});
