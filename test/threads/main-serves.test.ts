// Which requests a thread passes on, and that it keeps all others.
import { expect, test } from "bun:test";
import { mainServes } from "../../src/threads/main-serves.ts";
import type { Ask } from "../../src/core/types.ts";
import { model } from "../account/office.ts";

const plain = {
  turns: [],
  toolChoice: "auto",
  webSearch: null,
  format: null,
  model: model("core-3"),
} as unknown as Ask;
const search = {
  usesMax: null,
  allowedDomains: [],
  blockedDomains: [],
  location: null,
  asFunction: false,
  forced: false,
};
const searching: Ask = { ...plain, webSearch: search };
const nothing = { search: null, mcp: [] };
const somewhere = { provider: "local", folder: "/", baseUrl: "", rescanIntervalMs: 1 } as const;

test.each<[string, Ask | null, Parameters<typeof mainServes>[1], boolean]>([
  ["a plain request stays", plain, nothing, false],
  ["one that refers to a stored response goes", null, nothing, true],
  ["a search goes where there is one", searching, { ...nothing, search: somewhere }, true],
  ["a search stays where there is none: it is answered without", searching, nothing, false],
  [
    "a search that may not be called stays",
    { ...searching, toolChoice: "none" },
    { ...nothing, search: somewhere },
    false,
  ],
  ["one whose model may call a server's tools goes", plain, { ...nothing, mcp: [{ models: ["core-3"] }] }, true],
  ["one whose model may not stays", plain, { ...nothing, mcp: [{ models: ["core-1.6-pro"] }] }, false],
  [
    "one with a format stays: no server's tools are offered",
    { ...plain, format: { kind: "json_object" } },
    { ...nothing, mcp: [{ models: null }] },
    false,
  ],
  [
    "an image by address goes",
    { ...plain, turns: [{ role: "user", content: [{ kind: "image", url: "https://x/y.png", detail: null }] }] },
    nothing,
    true,
  ],
  [
    "an inline image stays",
    { ...plain, turns: [{ role: "user", content: [{ kind: "image", url: "data:image/png;base64,", detail: null }] }] },
    nothing,
    false,
  ],
])("%s", (_name, ask, rules, expected) => {
  expect(mainServes(ask, rules)).toBe(expected);
});
