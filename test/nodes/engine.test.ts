// Which engine answers: what each tells of itself, and what must not be taken for one.
import { afterEach, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/core/clock.ts";
import { dialSocket, NodeClient, originOf } from "../../src/nodes/client/client.ts";
import { detectEngine, discoverLocalEngine } from "../../src/nodes/engine.ts";
import { RawNode, wholeReply } from "../fixtures/raw-node.ts";

const open: { stop(): void }[] = [];
afterEach(() => {
  for (const one of open.splice(0)) one.stop();
});

/** A node that answers the paths given, else 404. */
function nodeOf(paths: Record<string, string>): RawNode {
  const node = new RawNode(({ path }, reply) => reply.write(paths[path] ?? wholeReply("404 Not Found", "")));
  open.push(node);
  return node;
}

const models = (entry: object): string =>
  wholeReply("200 OK", JSON.stringify({ object: "list", data: [{ id: "m", object: "model", created: 1, ...entry }] }));

async function detect(paths: Record<string, string>) {
  const client = new NodeClient(originOf(new URL(nodeOf(paths).url)), { clock: systemClock });
  open.push({ stop: () => client.close() });
  return detectEngine(client, "/v1", null, 2_000);
}

describe("which engine", () => {
  test("by the owner in its model list", async () => {
    expect(await detect({ "/v1/models": models({ owned_by: "vllm", max_model_len: 4_096 }) })).toEqual({
      kind: "vllm",
      contextTokens: 4_096,
      models: ["m"],
    });
    expect(await detect({ "/v1/models": models({ owned_by: "sglang", max_model_len: 8_192 }) })).toMatchObject({
      kind: "sglang",
    });
    expect(await detect({ "/v1/models": models({ owned_by: "organization_owner" }) })).toMatchObject({
      kind: "lm-studio",
      contextTokens: null,
    });
  });
  test("llama-server, as recorded", async () => {
    const recorded = readFileSync(
      join(import.meta.dir, "../fixtures/node-transcripts/llama-server-models.http"),
      "utf8",
    );
    expect(await detect({ "/v1/models": recorded })).toEqual({
      kind: "llama.cpp",
      contextTokens: 4_096,
      models: ["tiny"],
    });
  });
  test("by routes of its own", async () => {
    expect(
      await detect({
        "/v1/models": models({ owned_by: "library" }),
        "/api/version": wholeReply("200 OK", '{"version":"0.9"}'),
      }),
    ).toMatchObject({ kind: "ollama" });
    expect(
      await detect({ "/v1/models": models({}), "/info": wholeReply("200 OK", '{"max_total_tokens":4096}') }),
    ).toMatchObject({ kind: "tgi" });
  });
  test("unknown stays unknown", async () => {
    expect(await detect({ "/v1/models": models({ owned_by: "me" }) })).toEqual({
      kind: "unknown",
      contextTokens: null,
      models: ["m"],
    });
  });
  const others: [string, string][] = [
    ["a web page", wholeReply("200 OK", "<html>", "Content-Type: text/html\r\n")],
    ["other JSON", wholeReply("200 OK", '{"models":[]}')],
    ["an empty list", wholeReply("200 OK", '{"object":"list","data":[]}')],
    ["a list of something else", wholeReply("200 OK", '{"object":"list","data":[{"id":1}]}')],
    ["404", wholeReply("404 x", "")],
    ["401", wholeReply("401 x", '{"error":"no"}')],
  ];
  for (const [name, reply] of others)
    test(`none: ${name}`, async () => expect(await detect({ "/v1/models": reply })).toBeNull());
});

describe("a local engine", () => {
  const discover = (ports: Record<number, number>) =>
    discoverLocalEngine((origin, listener) => {
      const port = ports[origin.port];
      if (port === undefined) setTimeout(() => listener.closed("ECONNREFUSED"), 0);
      else dialSocket({ ...origin, port }, listener);
    });
  test("is found on its default port and serves every model by its first name", async () => {
    const node = nodeOf({ "/v1/models": models({ owned_by: "llamacpp" }) });
    expect(await discover({ 8080: node.port })).toEqual({
      name: "llama-cpp",
      url: "http://127.0.0.1:8080/v1",
      apiKey: null,
      slots: 4,
      models: { "*": "m" },
    });
  });
  test("the first in order wins", async () => {
    const node = nodeOf({ "/v1/models": models({ owned_by: "vllm" }) });
    expect(await discover({ 8080: node.port, 8000: node.port })).toMatchObject({ name: "vllm" });
  });
  test("none: nothing listens, another web server does, or one that never answers", async () => {
    expect(await discover({})).toBeNull();
    expect(await discover({ 8080: nodeOf({ "/v1/models": wholeReply("200 OK", "<html>") }).port })).toBeNull();
    const silent = new RawNode(() => {});
    open.push(silent);
    expect(await discover({ 8080: silent.port, 8000: silent.port })).toBeNull();
  });
});
