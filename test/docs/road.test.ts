// The guide's "Ten minutes from GPU box to team", walked by its own code blocks: a checkout, npm, a shell, and for
// people a real Chromium, which reads the later blocks off the page that the server shows. Nothing else is done.
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { chapters, titleOf } from "../../src/docs/guide.ts";
import { freePort } from "../../src/http/free-port.ts";
import { launch, Visit, withoutBrowser } from "../console-web/browser.ts";
import { runToEnd } from "../fixtures/children.ts";
import { eventually } from "../fixtures/eventually.ts";
import { linesOf } from "../fixtures/lines.ts";
import { longForm, missing } from "../fixtures/optional.ts";

setDefaultTimeout(180_000);

const root = join(import.meta.dir, "../..");
const written = chapters.find(({ id }) => id === "team")!;
const blocksOfFile = [...written.text.matchAll(/^```\w+\n([\s\S]*?)^```$/gm)].map(([, block]) => block!);

/** The one block of these that has all the words. */
function blockWith(blocks: readonly string[], ...words: readonly string[]): string {
  const found = blocks.filter((block) => words.every((word) => block.includes(word)));
  expect([words, found.length]).toEqual([words, 1]);
  return found[0]!;
}

const answer = "Hello from the box";

/** The engine of the guide: it lists qwen3:8b and answers as it and as nothing else. */
function startEngine() {
  const asked: string[] = [];
  const event = (more: object): string => `data: ${JSON.stringify({ object: "chat.completion.chunk", ...more })}\n\n`;
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const { pathname } = new URL(request.url);
      if (pathname === "/v1/models") {
        return Response.json({ object: "list", data: [{ id: "qwen3:8b", object: "model" }] });
      }
      if (pathname !== "/v1/chat/completions") return new Response("not found", { status: 404 });
      const { model } = (await request.json()) as { model: string };
      asked.push(model);
      if (model !== "qwen3:8b") return Response.json({ error: { message: "no such model" } }, { status: 404 });
      const choice = { index: 0, delta: { role: "assistant", content: answer }, finish_reason: "stop" };
      const usage = { prompt_tokens: 9, completion_tokens: 4, total_tokens: 13 };
      return new Response(`${event({ choices: [choice] })}${event({ choices: [], usage })}data: [DONE]\n\n`, {
        headers: { "content-type": "text/event-stream" },
      });
    },
  });
  return {
    asked,
    url: `http://127.0.0.1:${server.port}/v1`,
    [Symbol.dispose]: () => void server.stop(true),
  };
}

/** A checkout of which nothing but the folder is another one, at a free port. */
class Walk implements AsyncDisposable {
  readonly folder = mkdtempSync(join(tmpdir(), "tollgate-road-"));
  readonly port = freePort("127.0.0.1");
  readonly url = `http://127.0.0.1:${this.port}`;
  /** What the start printed last. */
  printed = "";
  /** What the shell has by now: functions and variables of earlier blocks. */
  #shell = "";
  #server: Bun.Subprocess<"ignore", "pipe", "pipe"> | null = null;

  constructor() {
    for (const name of ["package.json", "src", "node_modules"]) symlinkSync(join(root, name), join(this.folder, name));
  }

  /** Only where things are on this machine is other than written. */
  #here(block: string): string {
    return block.replaceAll("http://127.0.0.1:8400", this.url);
  }

  get #environment(): Record<string, string | undefined> {
    return { PATH: process.env["PATH"], HOME: this.folder, TOLLGATE_PORT: String(this.port), NO_COLOR: "1" };
  }

  /** A block that starts the server, in a terminal of its own. */
  async serve(block: string): Promise<void> {
    const child = Bun.spawn(["sh", "-euc", `exec ${block.replace(/^npm install\n/, "")}`], {
      cwd: this.folder,
      env: this.#environment,
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
      detached: true, // a group, as a terminal has it
    });
    this.#server = child;
    this.printed = "";
    const read = async (output: ReadableStream<Uint8Array>): Promise<void> => {
      for await (const line of linesOf(output)) this.printed += `${line}\n`;
    };
    void read(child.stdout);
    void read(child.stderr);
    await eventually("the start has said which names are understood", () => {
      if (child.exitCode !== null || child.signalCode !== null)
        throw new Error(`it ended with ${child.exitCode ?? child.signalCode}:\n${this.printed}`);
      return Promise.resolve(/^Models?:? /m.test(this.printed));
    });
  }

  /** Ctrl-C reaches all that the terminal runs. */
  async stop(): Promise<void> {
    const child = this.#server;
    if (child === null) return;
    this.#server = null;
    process.kill(-child.pid, "SIGINT");
    await child.exited;
    await eventually("nothing listens any more", () =>
      fetch(`${this.url}/healthz`).then(
        () => false,
        () => true,
      ),
    );
  }

  /** What the block printed. */
  async run(block: string): Promise<string> {
    const { code, stdout, stderr } = await runToEnd(["sh", "-euc", `${this.#shell}${this.#here(block)}`], {
      cwd: this.folder,
      env: this.#environment, // its input is empty: Enter is pressed
    });
    expect([block, code, code === 0 ? "" : stderr]).toEqual([block, 0, ""]);
    this.#shell += (block.match(/^(?:tollgate\(\)|export) .*\n/gm) ?? []).join("");
    return stdout;
  }

  get #printedPassword(): string {
    return /^ +password +(\S+)$/m.exec(this.printed)![1]!;
  }

  /** Up to where people come in; returns the operator's password. */
  async toTheNetwork(engineUrl: string): Promise<string> {
    // Nobody answers here, and other engines may run on this machine.
    const init = blockWith(blocksOfFile, "npm install")
      .replace(/^npm install\n/, "")
      .trim();
    await this.run(`${init} --yes --node ${engineUrl}\n`);
    expect(readFileSync(join(this.folder, "tollgate.toml"), "utf8")).toContain('\nid = "qwen3:8b"');
    await this.serve(blockWith(blocksOfFile, "--host 0.0.0.0"));
    const password = this.#printedPassword;
    expect(await this.run(blockWith(blocksOfFile, "tollgate()"))).toContain("qwen3:8b");
    expect(this.printed).toContain(`listening on http://0.0.0.0:${this.port}`);
    expect(this.printed).toContain(`Open ${this.url} here`);
    return password;
  }

  async expectAnswer(request: string, key: string, asked: readonly string[]): Promise<void> {
    await this.run(blockWith(blocksOfFile, "export TOLLGATE_KEY").replace("sk-tg-...", key));
    const reply = JSON.parse(await this.run(request)) as { choices: { message: { content: string } }[] };
    expect(reply.choices[0]!.message.content).toBe(answer);
    expect(asked.at(-1)).toBe("qwen3:8b");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

const withoutTools = ["npm", "node", "curl", "sh"].some((name) =>
  missing(name, Bun.which(name) !== null, "install it"),
);

describe.skipIf(withoutTools)("from GPU box to team", () => {
  test("by the guide's commands alone: a colleague's key gets the box's answer", async () => {
    using engine = startEngine();
    await using walk = new Walk();
    await walk.toTheNetwork(engine.url);
    await walk.run(blockWith(blocksOfFile, "accounts create"));
    const [key = ""] = (await walk.run(blockWith(blocksOfFile, "keys create"))).split("\n");
    await walk.expectAnswer(blockWith(blocksOfFile, "curl"), key, engine.asked);
    // What Open WebUI asks first.
    const models = await fetch(`${walk.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
    expect(((await models.json()) as { data: { id: string }[] }).data.map(({ id }) => id)).toEqual(["qwen3:8b"]);
  });

  const withoutPeople = withoutBrowser || missing("a minute in a browser", longForm, "set TOLLGATE_TESTS=all", false);
  test.skipIf(withoutPeople)("with people in a browser, by the blocks of the page that the server shows", async () => {
    using engine = startEngine();
    await using walk = new Walk();
    const password = await walk.toTheNetwork(engine.url);
    const browser = await launch();
    try {
      await using operator = await Visit.open(browser, walk.url);
      await operator.signIn("operator@localhost", password);
      await operator.goTo("/docs/guide/team", titleOf(written));
      const blocks = await blocksOfPage(operator.page);
      const request = blockWith(blocks, "curl");
      expect([request.includes(`${walk.url}/v1/`), request.includes('"model":"qwen3:8b"')]).toEqual([true, true]);

      const made = await walk.run(blockWith(blocks, "accounts create"));
      const [email] = /\S+@\S+/.exec(made)!;
      const [, given] = /^(\S{20})$/m.exec(made.slice(made.indexOf("The key is shown")))!;
      await operator.goTo("/operator/accounts", "Accounts");
      await operator.page.getByText(email).first().waitFor();

      await using colleague = await Visit.open(browser, walk.url);
      await colleague.signIn(email, given!);
      const { page } = colleague;
      await page.getByRole("link", { name: "API key", exact: true }).first().click();
      await page.getByRole("button", { name: "New key" }).click();
      await page.getByRole("dialog").getByLabel("Name", { exact: true }).fill("laptop");
      await page.getByRole("dialog").getByRole("button", { name: "Make key" }).click();
      const key = await page.getByRole("status").locator("code").textContent();
      expect(await page.locator("main").textContent()).toContain(`${walk.url}/v1/chat/completions`);
      await walk.expectAnswer(request, key ?? "", engine.asked);
      await colleague.goTo("/usage", "Usage");
      await page.getByRole("row").filter({ hasText: "qwen3:8b" }).first().waitFor();
      expect([operator.problems, colleague.problems]).toEqual([[], []]);
    } finally {
      await browser.close();
    }
  });
});

const blocksOfPage = (page: Page): Promise<string[]> =>
  page.locator(".guide pre code").evaluateAll((all) => all.map(({ textContent }) => textContent ?? ""));
