// Large request bodies of several kinds, and a program that sends one:
//
//   bun bench/large-body-kinds.ts KIND BYTES PORT KEY
/** The model that the bodies ask for; a node of its own serves it. */
export const largeBodyModel = "core-3-pro";

const message = (content: unknown) => ({ role: "user", content });
const chat = (messages: readonly unknown[], more: object = {}) =>
  JSON.stringify({ model: largeBodyModel, max_tokens: 1, messages, ...more });
const times = <Made>(count: number, make: (index: number) => Made): Made[] =>
  Array.from({ length: Math.floor(count) }, (_none, index) => make(index));

const prose = "The quick brown fox jumps over the lazy dog, \u00e9t\u00e9 and winter.\n";
/** A PNG of one pixel, to which base64 is appended. */
const picture = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJg";
const parameters = {
  type: "object",
  properties: { path: { type: "string", description: "where" }, lines: { type: "array", items: { type: "integer" } } },
  required: ["path"],
};

/** Bodies of about so many bytes, a little less. */
const bodies = {
  "long text": (bytes: number) => chat([message(prose.repeat(bytes / 72))]),
  "100,000 messages": (bytes: number) =>
    chat(times(100_000, (index) => message(prose.repeat(9).slice(0, Math.max(1, bytes / 100_000 - 55)) + index))),
  "tiny messages": (bytes: number) => chat(times(bytes / 31 - 10, () => message("a"))),
  "base64 images": (bytes: number) =>
    chat([
      message(
        times(8, () => ({
          type: "image_url",
          image_url: { url: `data:image/png;base64,${picture}${"QUJD".repeat(bytes / 33)}` },
        })),
      ),
    ]),
  "many tools": (bytes: number) =>
    chat([message("hi")], {
      tools: times(bytes / 320, (index) => ({ type: "function", function: { name: `tool_${index}`, parameters } })),
    }),
  "2 MB of tools, then text": (bytes: number) =>
    chat([message("a".repeat(Math.max(1, bytes - 2_200_000)))], {
      tools: times(Math.min(bytes, 1_900_000) / 320, (index) => ({
        type: "function",
        function: { name: `tool_${index}`, parameters },
      })),
    }),
  "only brackets": (bytes: number) => "[".repeat(bytes / 2) + "]".repeat(bytes / 2),
} as const;
export type BodyKind = keyof typeof bodies;
export const bodyKinds = Object.keys(bodies) as BodyKind[];
/** Those that are refused, and with what. */
export const expectedStatus: Partial<Record<BodyKind, string>> = { "many tools": "400", "only brackets": "400" };

if (import.meta.main) {
  const [kind = "", bytes, port, key] = process.argv.slice(2);
  const body = Buffer.from(bodies[kind as BodyKind](Number(bytes)));
  console.log("ready");
  for await (const _ of console) break;
  const response = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body,
  });
  console.log(response.status, (await response.text()).slice(0, 200));
}
