// What clients and operators read about a node's refusal: recorded errors of ten engines and routers, and what must
// never be in the log, whatever a node says.
import { describe, expect, test } from "bun:test";
import { failureOfEvent, failureOfStatus } from "../../../src/nodes/failure/failure.ts";
import { loggableWords } from "../../../src/nodes/failure/node-words.ts";
import { messageOf } from "../../../src/core/refusals.ts";
import type { Ask } from "../../../src/core/types.ts";
import { askOf, preparedOf, toolOf } from "../../fixtures/asks.ts";
import { transcripts } from "../../fixtures/transcripts.ts";

const picture = { kind: "image", url: "data:image/png;base64,AAAA", detail: null } as const;
const withImage = askOf({ turns: [{ role: "user", content: [{ kind: "text", text: "What is it?" }, picture] }] });
const withSchema = askOf({ format: { kind: "json_schema", name: "x", schema: { type: "strange" }, strict: null } });
const withCall = askOf({
  turns: [
    { role: "assistant", content: null, reasoning: null, calls: [{ id: "1", name: "f", arguments: "{bad" }] },
    { role: "tool", callId: "1", content: "done" },
  ],
});

/** By the recorded case: what had been asked for, and what the client must read. */
const expected: Readonly<Record<string, readonly [Ask, RegExp, elsewhere: boolean | "unlike"]>> = {
  image: [withImage, /cannot read images here/, "unlike"],
  "image-no-mmproj": [withImage, /cannot read images here/, "unlike"],
  "bad-schema": [withSchema, /JSON schema here/, "unlike"],
  "json-schema": [withSchema, /JSON schema here/, "unlike"],
  "json-schema-bad-schema": [withSchema, /JSON schema here/, "unlike"],
  "tool-bad-args-history": [withCall, /arguments of an earlier tool call/, false],
  "tool-result": [withCall, /does not accept this combination/, "unlike"],
  "developer-role": [askOf(), /does not accept this combination/, "unlike"],
  parts: [askOf(), /chat template/, "unlike"],
  "effort-high": [askOf({ effort: "high" }), /reasoning effort/, "unlike"],
  overflow: [askOf(), /^prompt is too long: \d+ tokens > \d+ maximum$/, false],
  "too-long": [askOf(), /^prompt is too long: 5009 tokens > 4096 maximum$/, false],
};
const templates = /chat template|does not accept this combination/;
/** The recorded refusals of what a client asked for, by the names that the cases have in every engine's transcript. */
const recorded = transcripts
  .map((transcript) => ({ ...transcript, name: transcript.name.replace(/^\d+[a-z]?-/, "") }))
  .filter(({ name, status }) => status >= 400 && (name === "empty-messages" || name in expected));

describe("recorded errors", () => {
  for (const { engine, name, status, body } of recorded) {
    if (engine === "transformers") continue; // says nothing but "Internal Server Error"
    test(`${engine}: ${name}, status ${status}, is the client's`, () => {
      const [ask, message, elsewhere] = expected[name] ?? [askOf({ turns: [] }), templates, expect.anything()];
      const failure = failureOfStatus(ask, status, body);
      expect(messageOf(failure.refusal)).toMatch(message);
      expect(failure).toMatchObject({ blames: "client", elsewhere });
      expect(["malformed", "context_length_exceeded"]).toContain(failure.refusal.refusal);
      expect(failure.cause).not.toMatch(/\/|https?:|\d+\.\d+\.\d+/);
    });
  }
  test("they are there", () => expect(recorded.length).toBe(36));
  test("without words it is the node's", () => {
    const { status, body } = recorded.find(({ engine }) => engine === "transformers")!;
    expect(failureOfStatus(askOf(), status, body)).toMatchObject({
      blames: "node",
      refusal: { refusal: "node_failed" },
      cause: "status 500: Internal Server Error",
    });
  });
});

test("a bias that transformers does not take, as recorded in its stream", () => {
  const said = '{"error": "`sequence_bias` has to be a dict with floats as values, but is {(999999,): 1}."}';
  const ask = askOf({ sampling: { logit_bias: { "999999": 1 } } });
  const failure = failureOfEvent(ask, said, false);
  expect(failure).toMatchObject({ blames: "client", elsewhere: "unlike" });
  expect(messageOf(failure.refusal)).toMatch(/does not take this logit_bias here/);
  expect(failureOfEvent(askOf(), said, false)).toMatchObject({ blames: "node" });
});

// As the engines' sources say it; each is a status 400 or 500.
test.each([
  ["registry.ollama.ai/library/tiny:latest does not support tools", askOf({ tools: [toolOf("f")] }), /takes no tools/],
  ["tools param requires --jinja flag", askOf({ tools: [toolOf("f")] }), /takes no tools/],
  ['"tiny" does not support thinking', askOf({ effort: "high" }), /reasoning effort/],
  ["this model is missing data required for image input", withImage, /cannot read images/],
  ["Model does not support images. Please use a model that does.", withImage, /cannot read images/],
  ["At most 0 image(s) may be provided in one prompt.", withImage, /cannot read images/],
  ["Failed to load image or audio file", withImage, /send it as PNG or JPEG/],
  ["cannot identify image file <_io.BytesIO object>", withImage, /send it as PNG or JPEG/],
  ["Jinja Exception: Conversation roles must alternate user/assistant", askOf(), /chat template/],
])("%s", (message, ask, reason) => {
  const body = JSON.stringify({ error: { message, code: 500 } });
  for (const failure of [failureOfStatus(ask, 500, body), failureOfEvent(ask, body, false)]) {
    expect(failure).toMatchObject({ blames: "client", refusal: { refusal: "malformed" } });
    expect(messageOf(failure.refusal)).toMatch(reason);
  }
  expect(failureOfEvent(ask, body, true).elsewhere).toBe(false);
});

test.each([400, 422])(
  "an error with code %d that comes before anything else is the client's, as the status would be",
  (code) => {
    for (const error of [{ error: { message: "Please reduce it", code } }, { object: "error", message: "no", code }]) {
      const event = JSON.stringify(error);
      expect(failureOfEvent(askOf(), event, false)).toMatchObject({
        blames: "client",
        elsewhere: false,
        refusal: { refusal: "malformed" },
      });
      expect(failureOfEvent(askOf(), event, true)).toMatchObject({
        blames: "node",
        refusal: { refusal: "node_failed" },
      });
    }
    expect(failureOfEvent(askOf(), JSON.stringify({ error: { code: 500 } }), false).blames).toBe("node");
  },
);

test("an error whose fields are objects without a value as text is the node's failure", () => {
  const strange = { toString: 1, valueOf: 1 };
  for (const event of [{ error: { code: strange, type: strange, message: strange } }, { message: strange }])
    expect(failureOfEvent(askOf(), JSON.stringify(event), false)).toMatchObject({
      blames: "node",
      refusal: { refusal: "node_failed" },
    });
});

test("a refused schema is told from other faults of a request", () => {
  const words = (message: string) => JSON.stringify({ error: { message, code: 400 } });
  expect(failureOfStatus(withSchema, 400, words("Failed to compile json grammar: no")).ofSchema).toBe(true);
  expect(failureOfEvent(withSchema, words("Grammar error: Invalid type"), false).ofSchema).toBe(true);
  expect(failureOfStatus(withImage, 400, words("is not a multimodal model")).ofSchema).toBeUndefined();
  expect(failureOfStatus(askOf(), 400, words("Grammar error: Invalid type")).ofSchema).toBeUndefined();
});

test("what a request does not have is not its fault", () => {
  const body = JSON.stringify({ error: { message: "image input is not supported" } });
  expect(failureOfStatus(askOf(), 500, body)).toMatchObject({ blames: "node", refusal: { refusal: "node_failed" } });
});

describe("the log", () => {
  const large = askOf({ prepared: preparedOf({ images: 1 }), turns: [] });
  test.each([
    ["dial tcp 10.0.0.7:8000 failed", "dial tcp [address] failed"],
    ["see http://gpu-1.example.org/help or gpu-box:8000", "see [address] or [address]"],
    ["no file /srv/models/tiny.gguf or C:\\models\\tiny", "no file [address] or [address]"],
    ["host ::1 and fe80::1%eth0 and registry.internal say no", "host [address] and [address] and [address] say no"],
    [`token ${"a1".repeat(30)} is wrong`, "token [address] is wrong"],
    ["roles must alternate user/assistant", "roles must alternate user/assistant"],
    ["expected 3 of 4 at 0.5", "expected 3 of 4 at 0.5"],
    ["unexpected 'input': 'my own words'", "unexpected"],
    ["10.0.0.7", null],
  ])("has no address: %s", (message, words) => expect(loggableWords(message, askOf())).toBe(words));

  test("has nothing of the prompt", () => {
    const ask = askOf({ turns: [{ role: "user", content: "my mother's maiden name is Xy7zzy" }] });
    const words = loggableWords("cannot parse: my mother's maiden name is Xy7zzy at the end", ask);
    expect(words).toBe("cannot parse: [prompt] at the end");
    expect(loggableWords("bad word Xy7zzy", ask)).toBe("bad word [prompt]");
    expect(loggableWords('unknown type "maiden" here', ask)).toBe("unknown type [prompt] here");
    expect(loggableWords("anything that may be of it", large)).toBeNull();
  });

  test("is short, whatever a node sends, and takes no time", () => {
    const before = process.cpuUsage();
    for (const part of ["a", "a ", "/", ".a", "'", "input", "\\", "[{", "[prompt] ", "::", "a:"]) {
      const body = part.repeat(64 * 1024);
      const { cause } = failureOfStatus(withImage, 500, body);
      expect(cause.length).toBeLessThan(400);
    }
    const { user, system } = process.cpuUsage(before);
    expect(user + system).toBeLessThan(1_000_000);
  });
});
