// GET /docs in a real browser: it loads nothing from elsewhere, breaks no rule of its own policy, works with the
// keyboard, with screen readers and without scripts, and fits a phone.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import axe from "axe-core";
import type { Browser } from "playwright-core";
import { embeddedCatalog } from "../../src/core/catalog.ts";
import { describeApi } from "../../src/http/openapi/description.ts";
import { chapters, titleOf } from "../../src/docs/guide.ts";
import { guidePage } from "../../src/docs/guide-page.ts";
import { highlighted } from "../../src/docs/highlighted.ts";
import { referencePage } from "../../src/docs/reference-page.ts";
import { launch, Visit, withoutBrowser } from "../console-web/browser.ts";
import { GatewayProcess } from "../fixtures/gateway-process.ts";

setDefaultTimeout(120_000);

let gateway: GatewayProcess;
beforeAll(async () => {
  gateway = await GatewayProcess.start({ config: "" });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
});

describe("the page", () => {
  test("names every endpoint, and every field, event and status of each", () => {
    const document = describeApi({ catalog: embeddedCatalog(), baseUrl: "https://llm.example.org" });
    const { html } = referencePage(document, null);
    for (const [path, methods] of Object.entries(document.paths)) {
      expect(html).toContain(`<code>${path}</code>`);
      for (const { operationId, responses, "x-events": events = {} } of Object.values(methods)) {
        const article = html.slice(html.indexOf(`<article id="${operationId}">`)).split("</article>")[0]!;
        for (const name of [...Object.keys(responses), ...Object.keys(events)]) expect(article).toContain(`>${name}<`);
      }
    }
    for (const field of Object.keys(document.components.schemas["ResponsesRequest"]!.properties!)) {
      expect(html).toContain(`<dt><code>${field}</code>`);
    }
  });

  test("escapes whatever the description says", () => {
    const evil = '</script><script>alert(1)</script><img src=x onerror="alert(1)">';
    const document = describeApi({ catalog: embeddedCatalog(), baseUrl: `https://x/${evil}` });
    const { html } = referencePage({ ...document, info: { ...document.info, description: evil, title: evil } }, null);
    expect(html).not.toContain("<script>alert");
    expect(html).not.toContain("<img");
    expect(highlighted('curl "<b>"', "Shell")).toBe(
      '<span class="keyword">curl</span> <span class="string">&quot;&lt;b&gt;&quot;</span>',
    );
  });

  test("may run and load nothing but what it has itself, and is small on its way", async () => {
    const reply = await fetch(`${gateway.url}/docs`, { headers: { "accept-encoding": "br" } });
    const policy = reply.headers.get("content-security-policy")!;
    expect(policy).toMatch(
      /^default-src 'none'; font-src 'self'; img-src 'self'; style-src 'sha256-\S+'; script-src 'sha256-\S+';/,
    );
    expect(policy).not.toContain("unsafe");
    const html = await reply.text();
    const addresses = [...html.matchAll(/(?:src|href)="([^"#][^"]*)"/g)].map(([, address]) => address!);
    expect(addresses.filter((address) => !address.startsWith("/"))).toEqual([]);
    const compressed = await fetch(`${gateway.url}/docs`, { headers: { "accept-encoding": "br" }, decompress: false });
    expect((await compressed.arrayBuffer()).byteLength).toBeLessThan(40_000);
  });
});

describe("the guide", () => {
  test("has every chapter, linked from each, with links that lead somewhere", async () => {
    expect((await fetch(`${gateway.url}/docs/guide`, { redirect: "manual" })).headers.get("location")).toBe(
      "/docs/guide/start",
    );
    const pages = new Map<string, string>();
    for (const { id } of chapters) {
      const reply = await fetch(`${gateway.url}/docs/guide/${id}`);
      expect([id, reply.status, reply.headers.get("content-security-policy")?.includes("unsafe")]).toEqual([
        id,
        200,
        false,
      ]);
      pages.set(id, await reply.text());
    }
    for (const [id, html] of pages) {
      for (const [, address = "", place = ""] of html.matchAll(/href="(\/docs\/guide[^"#]*)?(?:#([^"]*))?"/g)) {
        const target = address === "" ? html : (pages.get(address.slice("/docs/guide/".length)) ?? pages.get("start")!);
        if (place !== "" && place !== "content")
          expect([id, place, target.includes(`id="${place}"`)]).toEqual([id, place, true]);
      }
      // A link to a file of the repository is text here.
      expect([id, /href="(?!\/|#|https?:)/.exec(html)?.[0]]).toEqual([id, undefined]);
    }
    expect((await fetch(`${gateway.url}/docs/guide/nowhere`)).status).toBe(404);
  });

  test("and the reference name the address that a browser used, and never one that is no address", async () => {
    const named = async (path: string, host: string) => {
      const reply = await fetch(gateway.url + path, { headers: { host } });
      return (await reply.text()).replaceAll("&quot;", '"');
    };
    for (const path of ["/docs/guide/start", "/docs", "/openapi.json"]) {
      expect(await named(path, "gpu-box:8400")).toContain("http://gpu-box:8400/v1");
      const evil = await named(path, 'x"><script>alert(1)</script>');
      expect(evil).not.toContain("<script>alert");
      expect(evil).toContain(`${gateway.url}/v1`);
    }
  });

  test.each(["start", "team"])("gives samples of %s a model that the catalog has", (id) => {
    const about = { name: "Tollgate", baseUrl: "http://gpu-box:8400", model: "llama-3" };
    const { html } = guidePage(
      chapters.find((each) => each.id === id)!,
      about,
      null,
    );
    expect(html).not.toMatch(/core-3|qwen3:8b/);
    expect(html).toContain("llama-3");
    expect(html).toContain("http://gpu-box:8400/v1");
  });

  test("shows the sample of the configuration, which a server has no file to link to", async () => {
    const html = await (await fetch(`${gateway.url}/docs/guide/configuration`)).text();
    expect(html).toContain("max_wait_seconds = 600");
  });
});

describe.skipIf(withoutBrowser)("in Chromium", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(() => browser?.close());

  test.each([
    ["light", { colorScheme: "light" as const }],
    ["dark", { colorScheme: "dark" as const }],
    ["on a phone", { viewport: { width: 390, height: 844 } }],
  ])("%s it shows no fault, is readable to all and does not scroll sideways", async (_, options) => {
    await using visit = await Visit.open(browser, gateway.url, { ...options });
    const { page } = visit;
    await visit.goTo("/docs", "Tollgate API");
    expect(visit.problems).toEqual([]);
    expect(await page.evaluate("document.documentElement.scrollWidth - innerWidth")).toBe(0);
    for (const details of await page.locator("#createMessage details").all()) {
      await details.evaluate((element) => element.setAttribute("open", ""));
    }
    // The policy forbids a script that a test would add: evaluate runs outside of it.
    await page.evaluate(axe.source);
    const { violations } = (await page.evaluate(
      "axe.run(['.top', '.side', '.start', '#createMessage', '#errors'], { runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa'] })",
    )) as { violations: { id: string; nodes: { html: string }[] }[] };
    expect(violations.map(({ id, nodes }) => [id, nodes.slice(0, 3).map(({ html }) => html)])).toEqual([]);
  });

  test.each([
    ["light", { colorScheme: "light" as const }],
    ["dark, on a phone", { colorScheme: "dark" as const, viewport: { width: 390, height: 844 } }],
  ])(
    "%s every chapter of the guide shows no fault, is readable to all and does not scroll sideways",
    async (_, options) => {
      await using visit = await Visit.open(browser, gateway.url, options);
      const { page } = visit;
      for (const chapter of chapters) {
        await visit.goTo(`/docs/guide/${chapter.id}`, titleOf(chapter));
        expect(visit.problems).toEqual([]);
        expect([chapter.id, await page.evaluate("document.documentElement.scrollWidth - innerWidth")]).toEqual([
          chapter.id,
          0,
        ]);
        await page.evaluate(axe.source);
        const { violations } = (await page.evaluate("axe.run({ runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa'] })")) as {
          violations: { id: string; nodes: { html: string }[] }[];
        };
        expect(violations.map(({ id, nodes }) => [chapter.id, id, nodes[0]?.html])).toEqual([]);
      }
    },
  );

  test("a language that is chosen is chosen everywhere, also with the keyboard and after a visit", async () => {
    await using visit = await Visit.open(browser, gateway.url);
    const { page } = visit;
    await visit.goTo("/docs", "Tollgate API");
    const shown = (id: string) => page.locator(`#${id} .sample:visible`).getAttribute("data-label");
    expect(await shown("createMessage")).toBe("curl");
    await page.locator("#createMessage").getByRole("tab", { name: "Python" }).click();
    expect([await shown("createMessage"), await shown("listModels")]).toEqual(["Python", "Python"]);
    await page.keyboard.press("ArrowLeft");
    expect(await shown("createMessage")).toBe("JavaScript");
    await page.reload();
    expect(await shown("tokenize")).toBe("JavaScript");
    expect(visit.problems).toEqual([]);
  });

  test("the theme of the console holds, and a sample can be copied", async () => {
    await using visit = await Visit.open(browser, gateway.url, {
      colorScheme: "light",
      permissions: ["clipboard-read", "clipboard-write"],
    });
    const { page } = visit;
    await page.goto("/docs");
    await page.evaluate("localStorage.setItem('tollgate-theme', 'dark')");
    await page.reload();
    expect(await page.evaluate("getComputedStyle(document.body).backgroundColor")).toBe("rgb(11, 12, 15)");
    await page.locator("#listModels").getByRole("button", { name: "Copy" }).first().click();
    await page.locator("#listModels").getByRole("button", { name: "Copied" }).waitFor();
    expect(await page.evaluate("navigator.clipboard.readText()")).toStartWith("curl -sS ");
  });

  test("an address with a place in it leads there, also on a phone", async () => {
    await using visit = await Visit.open(browser, gateway.url, {
      viewport: { width: 390, height: 844 },
      reducedMotion: "reduce", // so that it is there at once
    });
    const { page } = visit;
    await page.goto("/docs#listModels", { waitUntil: "load" });
    await page.evaluate("document.fonts.ready.then(() => new Promise(requestAnimationFrame))");
    const top = await page.evaluate("document.querySelector('#listModels').getBoundingClientRect().top");
    expect(Math.abs(Number(top) - 68)).toBeLessThan(2);
  });

  test("without scripts every sample is on the page", async () => {
    await using visit = await Visit.open(browser, gateway.url, { javaScriptEnabled: false });
    await visit.page.goto("/docs");
    expect(await visit.page.locator("#createMessage .sample:visible").count()).toBe(3);
  });
});
