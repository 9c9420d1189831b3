// Visits every page of the console as a user and as an operator, for people who look at it:
//
//   node src/launch.mjs test/console-web/tour.ts measure [END]    bytes, times and layout shift of each page, at first visit
//   node src/launch.mjs test/console-web/tour.ts pictures [PART]  PNGs in .pictures/: themes, widths, 200 %, right to left, print
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { eventually } from "../fixtures/eventually.ts";
import { launch, Visit } from "./browser.ts";
import { colleague, House, operator, password } from "./house.ts";

type Stop = Readonly<{ path: string; who: "stranger" | "user" | "operator" }>;
const stops = (who: Stop["who"], ...paths: string[]): Stop[] => paths.map((path) => ({ path, who }));
const allStops: readonly Stop[] = [
  ...stops("stranger", "/sign-in", "/sign-in?new", "/join", "/set-password#nothing", "/docs"),
  ...stops("user", "/", "/playground", "/batch", "/usage", "/reports", "/plan", "/key", "/team", "/account"),
  ...stops("user", "/device?user_code=BBBB-CCCC", "/operator/nothing"),
  ...stops("operator", "/operator", "/operator/log", "/operator/accounts", "/operator/nodes", "/operator/models"),
  ...stops("operator", "/operator/line", "/operator/requests", "/operator/batches", "/operator/config"),
  ...stops("operator", "/operator/server", "/operator/audit", "/operator/nodes/gpu-c", "/operator/models/core-3.1"),
];

/** What nobody waits for any longer: the page has its heading, and nothing of it is loading. */
async function settled(page: Page): Promise<void> {
  await page.locator("h1").first().waitFor({ state: "attached" });
  const isThere = "document.querySelector('.loading, .splash, [aria-busy=true]') === null";
  await eventually("the page is there", () => page.evaluate<boolean>(isThere), 30_000);
}

type Session = Awaited<ReturnType<Visit["context"]["storageState"]>>;
const sessions = new Map<Stop["who"], Session>();

/** Signed in as who visits it, with nothing in the cache. Sign-ins are limited, so that each is kept. */
async function visitAs(browser: Browser, house: House, who: Stop["who"], options: BrowserContextOptions = {}) {
  const known = sessions.get(who);
  if (known !== undefined || who === "stranger")
    return Visit.open(browser, house.gateway.url, { ...options, ...(known && { storageState: known }) });
  const visit = await Visit.open(browser, house.gateway.url);
  const data = { email: who === "user" ? colleague : operator, password };
  await visit.context.request.post("/console/api/sign-in", { data, headers: { origin: house.gateway.url } });
  sessions.set(who, await visit.context.storageState());
  await visit[Symbol.asyncDispose]();
  return visitAs(browser, house, who, options);
}

const addressOf = (house: House, { path }: Stop): string => (path === "/join" ? `/join?${house.invitation}` : path);

/** Chromium's emulation of a slow mobile network. */
const slow3g = { offline: false, latency: 400, downloadThroughput: 50_000, uploadThroughput: 50_000 };

/** Runs in the page from its beginning. */
const watching = `
  globalThis.shift = 0;
  const isThere = () => document.querySelector("h1") !== null && document.querySelector(".loading, .splash") === null;
  new MutationObserver(() => {
    if (isThere()) globalThis.usefulAt ??= performance.now();
    else delete globalThis.usefulAt;
  }).observe(document, { subtree: true, childList: true });
  new PerformanceObserver((list) => {
    for (const { value } of list.getEntries()) shift += value;
  }).observe({ type: "layout-shift", buffered: true });`;

type Measure = Readonly<{
  bytes: number;
  requests: number;
  firstPaintMs: number;
  usefulMs: number;
  shift: number;
}>;

/** The first visit of a page by a browser that has nothing of it. `useful`: its heading and its own first numbers are there. */
async function measure(browser: Browser, house: House, stop: Stop, slow: boolean): Promise<Measure> {
  await using visit = await visitAs(browser, house, stop.who);
  const { page } = visit;
  const devtools = await visit.context.newCDPSession(page);
  await devtools.send("Network.enable");
  if (slow) await devtools.send("Network.emulateNetworkConditions", slow3g);
  let [bytes, requests] = [0, 0];
  devtools.on("Network.loadingFinished", ({ encodedDataLength }) => ((bytes += encodedDataLength), requests++));
  await page.addInitScript(watching);
  await page.goto(addressOf(house, stop), { waitUntil: "commit" });
  await settled(page);
  await page.waitForTimeout(slow ? 1_500 : 400); // what comes late would move it
  const seen = await page.evaluate<[number, number, number]>(
    "[performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0, usefulAt, shift]",
  );
  return { bytes, requests, firstPaintMs: seen[0], usefulMs: seen[1], shift: seen[2] };
}

type Look = Readonly<{ name: string; options: BrowserContextOptions; print?: boolean; rightToLeft?: boolean }>;
const phone = (width: number): BrowserContextOptions => ({
  viewport: { width, height: 844 },
  isMobile: true,
  hasTouch: true,
});
const looks: readonly Look[] = [
  { name: "light", options: { colorScheme: "light" } },
  { name: "dark", options: { colorScheme: "dark" } },
  { name: "390", options: phone(390) },
  { name: "320", options: { ...phone(320), colorScheme: "dark" } },
  { name: "200", options: { viewport: { width: 640, height: 430 }, deviceScaleFactor: 2 } },
  { name: "rtl", options: {}, rightToLeft: true },
  { name: "forced", options: { forcedColors: "active" } },
  { name: "print", options: { viewport: { width: 690, height: 990 } }, print: true },
];

async function pictures(part: string): Promise<void> {
  const folder = join(import.meta.dir, "../../.pictures");
  mkdirSync(folder, { recursive: true });
  await using house = await House.open({ badDay: true });
  const browser = await launch();
  for (const { name, options, print = false, rightToLeft = false } of looks) {
    for (const stop of allStops) {
      const title = `${name}-${stop.who}${stop.path.replace(/[^\w]+/g, "-")}`.replace(/-$/, "");
      if (!title.includes(part)) continue;
      await using visit = await visitAs(browser, house, stop.who, { ...options, reducedMotion: "reduce" });
      const { page } = visit;
      if (rightToLeft) await page.addInitScript("addEventListener('DOMContentLoaded', () => (document.dir = 'rtl'))");
      await page.goto(addressOf(house, stop));
      await settled(page);
      await page.waitForTimeout(500); // fonts and charts
      const past = await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth");
      if (past > 0) console.log(`${title}: ${past} pixels stick out`);
      if (print) {
        await Bun.write(join(folder, `${title}.pdf`), await page.pdf({ format: "A4" }));
        await page.emulateMedia({ media: "print" });
      }
      await page.screenshot({ path: join(folder, `${title}.png`), fullPage: true });
    }
  }
  await browser.close();
  console.log(`written to ${folder}`);
}

async function measures(part: string): Promise<void> {
  await using house = await House.open();
  const browser = await launch();
  console.log("page                              KB  requests   paint  useful   | slow 3G: paint  useful   shift");
  for (const stop of allStops.filter(({ path, who }) => `${who} ${path}`.endsWith(part))) {
    const [usual, slow] = [await measure(browser, house, stop, false), await measure(browser, house, stop, true)];
    const ms = (value: number): string => `${Math.round(value)} ms`.padStart(8);
    console.log(
      `${stop.who} ${stop.path}`.padEnd(32) +
        (usual.bytes / 1_000).toFixed(1).padStart(6) +
        String(usual.requests).padStart(6) +
        ms(usual.firstPaintMs) +
        ms(usual.usefulMs) +
        "         " +
        ms(slow.firstPaintMs) +
        ms(slow.usefulMs) +
        Math.max(usual.shift, slow.shift).toFixed(4).padStart(9),
    );
  }
  await browser.close();
}

if (import.meta.main) {
  const [, , what, part = ""] = process.argv;
  if (what === "measure") await measures(part);
  else if (what === "pictures") await pictures(part);
  else throw new Error("Say measure or pictures.");
}
