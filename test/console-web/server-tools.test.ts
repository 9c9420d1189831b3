// Tools that the server runs itself, in the playground: the call, its arguments and its result.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { eventually } from "../fixtures/eventually.ts";
import { callArguments, callStart, finish, type Script, stream, text } from "../fixtures/scripts.ts";
import { useStack } from "../fixtures/stack.ts";
import { launch, Visit, withoutBrowser } from "./browser.ts";

const timeLimit = 120_000;
const email = "ada@example.com";
const password = "correct horse battery";

describe.skipIf(withoutBrowser)("tools of MCP servers in the playground", () => {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-"));
  let browser: Browser;

  const [command, ...args] = [
    process.execPath,
    join(import.meta.dir, "../tools/mcp/scripted-mcp-server.ts"),
    join(folder, "notes"),
  ];
  const stack = useStack({
    config: `[[mcp]]\nname = "srv"\ncommand = ${JSON.stringify(command)}\nargs = ${JSON.stringify(args)}\n`,
  });

  beforeAll(async () => {
    browser = await launch();
    await stack.gateway.cli("accounts", "create", email, "--password", password);
    await eventually("the server's tools are offered", async () =>
      stack.gateway.output.includes("an MCP server offers its tools"),
    );
  }, timeLimit);
  afterAll(async () => {
    await browser?.close();
    rmSync(folder, { recursive: true, force: true });
  }, timeLimit);

  test(
    "a call is shown with its arguments and, folded, its result; a failed one says so",
    async () => {
      await using visit = await Visit.open(browser, stack.gateway.url);
      const { page } = visit;
      await visit.signIn(email, password);
      await page.setViewportSize({ width: 1480, height: 860 }); // the settings stand beside it
      await page.goto("/playground");
      // The server leaves out the tool that fails once "echo" was called.
      for (const [tool, failed] of [
        ["wrong", true],
        ["echo", false],
      ] as const) {
        for (const dialect of ["messages", "responses"]) {
          const name = `${dialect}-${tool}`;
          await stack.node.define(name, calling(`srv__${tool}`, { city: "Tōkyō" }));
          await page.getByLabel("Dialect").selectOption(dialect);
          await page.getByRole("textbox", { name: "Message" }).fill(`[[${name}]]`);
          await page.getByRole("button", { name: "Send", exact: true }).click();
          const call = page.getByRole("region", { name: `Call of ${tool} on srv` });
          await call.locator("pre").first().getByText('"city": "Tōkyō"').waitFor();
          await page.locator(".turn-foot").waitFor();
          await call.getByText("Result").click();
          await call.locator("details pre").waitFor();
          expect(await call.locator("details pre").textContent()).not.toBe("");
          expect(await call.getByText("Failed").count()).toBe(failed ? 1 : 0);
          expect(await call.getByText("Running").count()).toBe(0);
          expect(await page.locator(".turn.answer .markdown").textContent()).toContain("Done.");
          await page.getByRole("button", { name: "New conversation" }).click();
        }
      }
      expect(visit.problems).toEqual([]);
    },
    timeLimit,
  );
});

/** A model that calls the tool once and is done. */
const calling = (name: string, given: object): Script => ({
  advance: "rounds",
  replies: [
    stream(callStart(0, "call_1", name), callArguments(0, JSON.stringify(given)), finish("tool_calls")),
    stream(text("Done."), finish("stop")),
  ],
});
