// Who asks for a web search, in which form, and when the search must come first.
import { describe, expect, test } from "bun:test";
import { embeddedCatalog } from "../../../src/core/catalog.ts";
import { chatCompletions } from "../../../src/dialects/chat/chat-completions.ts";
import type { Dialect } from "../../../src/dialects/dialect.ts";
import { messages } from "../../../src/dialects/messages/messages.ts";
import { responsesDialect } from "../../../src/dialects/responses/responses.ts";
import { anySearch, isSearchFunction } from "../../../src/dialects/request/search-request.ts";
import { isRefusal, messageOf } from "../../../src/core/refusals.ts";
import type { WebSearch } from "../../../src/core/types.ts";
import { toolOf } from "../../fixtures/asks.ts";
import { readBody } from "../../fixtures/reading.ts";

const catalog = embeddedCatalog();
const responses = responsesDialect({
  sealingKey: new Uint8Array(32),
  clock: { wall: () => 0, monotonic: () => 0 },
  storesResponses: false,
}) as Dialect;
const user = [{ role: "user", content: "hello" }];

function ask(dialect: Dialect, body: object) {
  const read = readBody(dialect, { model: "core-3", ...body }, 100, catalog);
  return isRefusal(read) ? messageOf(read) : read;
}
const searchOf = (dialect: Dialect, body: object): WebSearch | null | string => {
  const read = ask(dialect, body);
  return typeof read === "string" ? read : read.webSearch;
};
const chat = (body: object) => searchOf(chatCompletions, { messages: user, ...body });
const message = (body: object) => searchOf(messages as Dialect, { messages: user, ...body });
const response = (body: object) => searchOf(responses, { input: "hello", ...body });

const query = { type: "object", properties: { query: { type: "string" } }, required: ["query"] };
const chatFunction = (parameters: object = query, name = "web_search") => ({
  type: "function",
  function: { name, parameters },
});
const asFunction = { ...anySearch, asFunction: true };
const forced = { ...anySearch, forced: true };

describe("a function web_search with a required string query", () => {
  test("asks for it in every dialect", () => {
    expect(chat({ tools: [chatFunction()] })).toEqual(asFunction);
    expect(message({ tools: [{ name: "web_search", input_schema: query }] })).toEqual(asFunction);
    expect(response({ tools: [{ type: "function", name: "web_search", parameters: query }] })).toEqual(asFunction);
  });

  test.each([
    ["another name", "search", query],
    ["an optional query", "web_search", { ...query, required: [] }],
    ["no required list", "web_search", { type: "object", properties: query.properties }],
    ["a query of another type", "web_search", { ...query, properties: { query: { type: "array" } } }],
    ["no query", "web_search", { type: "object", properties: { q: { type: "string" } }, required: ["query"] }],
    ["no properties", "web_search", { type: "object" }],
  ])("not with %s", (_what, name, parameters) => {
    expect(isSearchFunction(toolOf(name, { parameters }))).toBe(false);
    expect(chat({ tools: [chatFunction(parameters, name)] })).toBeNull();
  });

  test("not where tool_choice leaves it out", () => {
    const other = chatFunction(query, "other");
    const allowed = { type: "allowed_tools", allowed_tools: { mode: "auto", tools: [other] } };
    expect(chat({ tools: [chatFunction(), other], tool_choice: allowed })).toBeNull();
  });
});

describe("the wishes of a hosted tool", () => {
  const wishes = { allowedDomains: ["a.example"], blockedDomains: ["b.example"], location: "Bern, BE, CH" };
  const place = { type: "approximate", city: "Bern", region: "BE", country: "CH", timezone: "Europe/Zurich" };
  const lists = { allowed_domains: ["a.example", 5], blocked_domains: ["b.example"] };

  test("of messages", () => {
    const tool = { type: "web_search_20250305", name: "web_search", max_uses: 2, user_location: place, ...lists };
    expect(message({ tools: [tool] })).toEqual({ ...anySearch, ...wishes, usesMax: 2 });
  });

  test("of responses", () => {
    const tool = { type: "web_search", filters: lists, user_location: place };
    expect(response({ tools: [tool] })).toEqual({ ...anySearch, ...wishes });
    expect(response({ tools: [{ type: "web_search_preview" }] })).toEqual(anySearch);
    expect(response({ tools: [tool], max_tool_calls: 2 })).toEqual({ ...anySearch, ...wishes, usesMax: 2 });
    expect(response({ tools: [{ type: "web_search", external_web_access: false }] })).toBeNull();
  });

  test("of chat-completions", () => {
    const options = { search_context_size: "low", user_location: { type: "approximate", approximate: place } };
    expect(chat({ web_search_options: options })).toEqual({ ...anySearch, location: "Bern, BE, CH" });
  });
});

describe("a search that is forced", () => {
  test("by chat-completions", () => {
    const named = { type: "function", function: { name: "web_search" } };
    expect(chat({ web_search: true, tool_choice: named })).toEqual(forced);
    expect(chat({ web_search: true, tool_choice: "required" })).toEqual(forced);
    expect(chat({ tool_choice: named })).toContain("there is no tool named web_search");
    expect(chat({ tool_choice: "required" })).toBe("tool_choice required needs tools");
    expect(chat({ web_search: true, tools: [chatFunction(query, "a")], tool_choice: "required" })).toEqual(anySearch);
  });

  test("by messages", () => {
    const tools = [{ type: "web_search_20250305", name: "web_search" }];
    expect(message({ tools, tool_choice: { type: "tool", name: "web_search" } })).toEqual(forced);
    expect(message({ tools, tool_choice: { type: "any" } })).toEqual(forced);
    expect(message({ tools, tool_choice: { type: "auto" } })).toEqual(anySearch);
    const bash = [{ type: "bash_20250124", name: "bash" }];
    expect(message({ tools: bash, tool_choice: { type: "any" } })).toContain("can be called here");
  });

  test("by responses", () => {
    const tools = [{ type: "web_search" }, { type: "function", name: "a", parameters: query }];
    expect(response({ tools, tool_choice: { type: "web_search" } })).toEqual(forced);
    expect(response({ tools, tool_choice: "required" })).toEqual(anySearch);
    expect(response({ tools: [{ type: "web_search" }], tool_choice: "required" })).toEqual(forced);
    const only = { type: "allowed_tools", mode: "auto", tools: [{ type: "function", name: "a" }] };
    expect(response({ tools, tool_choice: only })).toBeNull();
    const both = { ...only, tools: [...only.tools, { type: "web_search" }] };
    expect(response({ tools, tool_choice: both })).toEqual(anySearch);
  });
});
