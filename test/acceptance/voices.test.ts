// Requests to models that hear and speak, on the real server before a node that says what real servers were recorded to say.
import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "../fixtures/eventually.ts";
import { type Account, GatewayProcess } from "../fixtures/gateway-process.ts";
import { recording, VoicesNode, voicesConfig } from "../fixtures/voices-node.ts";

setDefaultTimeout(60_000);

const node = new VoicesNode();
let gateway: GatewayProcess;
beforeAll(async () => {
  gateway = await GatewayProcess.start({ config: voicesConfig(node) });
});
afterEach(() => gateway.expectNothingReserved());
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  node[Symbol.dispose]();
});

type Fields = Readonly<Record<string, string>>;
/** 1.09 seconds. */
const talk = recording("short.mp3");
/** Balance tokens of a second at six dollars a minute, and of a character at three a thousand. */
const [perSecond, perCharacter] = [20_000, 600];

function formOf(fields: Fields, file: Uint8Array<ArrayBuffer> | null = Uint8Array.from(talk)): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.append(name, value);
  if (file !== null) form.append("file", new Blob([file]), 'a "talk"\n.mp3');
  return form;
}

const hear = (key: string, fields: Fields = {}, file?: Uint8Array<ArrayBuffer> | null, more: RequestInit = {}) =>
  fetch(`${gateway.url}/v1/audio/transcriptions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}` },
    body: formOf({ model: "whisper-1", ...fields }, file),
    ...more,
  });

const speak = (key: string, body: object, more: RequestInit = {}) =>
  fetch(`${gateway.url}/v1/audio/speech`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify({ model: "tts-1", voice: "alloy", ...body }),
    ...more,
  });

const messageOf = async (reply: Response) =>
  [reply.status, ((await reply.json()) as { error: { message: string } }).error.message] as const;
const eventsOf = (text: string) =>
  text
    .split("\n\n")
    .filter((event) => event.startsWith("data: "))
    .map((event) => JSON.parse(event.slice(6)) as Record<string, any>);
const rowsOf = async ({ email }: Account) =>
  (await gateway.usage(email)).map(({ endpoint, model, input, output, billed_tokens, estimated }) => ({
    endpoint,
    model,
    input,
    output,
    billed_tokens,
    estimated,
  }));
/** Uploads that are on the disk. */
const uploads = (): string[] =>
  readdirSync(join(gateway.dataFolder, "files"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => name);

/** What vLLM was recorded to say, a word an event. */
const fox = " The quick brown fox jumps over the lazy dog and the dog sleeps on.";

describe("transcriptions", () => {
  test("come as the node writes them, with what was charged, and leave nothing on the disk", async () => {
    const account = await gateway.account();
    const reply = await hear(account.api_key, { language: "en", "timestamp_granularities[]": "word" });
    expect([reply.status, reply.headers.get("content-type")]).toEqual([200, "application/json; charset=utf-8"]);
    expect(await reply.json()).toEqual({ text: " Please pay the toll.", usage: { type: "duration", seconds: 2 } });
    expect(node.requests.at(-1)).toEqual({
      path: "/v1/audio/transcriptions",
      fields: { model: "whisper-1", language: "en", "timestamp_granularities[]": "word" },
      bytes: talk.length,
      hash: Bun.hash(talk),
      name: "a %22talk%22%0A.mp3", // as browsers write it
    });
    const verbose = (await (await hear(account.api_key, { response_format: "verbose_json" })).json()) as object;
    expect(verbose).toMatchObject({ task: "transcribe", duration: 1.091375, segments: [{ id: 0, end: 1 }] });
    const captions = await hear(account.api_key, { response_format: "srt" });
    expect([captions.headers.get("content-type"), await captions.text()]).toEqual([
      "text/plain; charset=utf-8",
      "1\n00:00:00,000 --> 00:00:01,000\nPlease pay the toll.\n",
    ]);
    const plain = await hear(account.api_key, { response_format: "text", prompt: "vllm" });
    expect([plain.headers.get("content-type"), await plain.text()]).toEqual(["text/plain; charset=utf-8", fox]);
    const row = { endpoint: "/v1/audio/transcriptions", model: "whisper-1", input: 2, output: 0 };
    const charged = { ...row, billed_tokens: 2 * perSecond, estimated: false };
    const byNode = { ...charged, input: 5, billed_tokens: 5 * perSecond };
    expect(await rowsOf(account)).toEqual([byNode, charged, charged, charged]);
    await eventually("the files are gone", async () => uploads().length === 0); // a moment after the reply
  });

  test("translations have their own address, at the node and in the log", async () => {
    const account = await gateway.account();
    const url = `${gateway.url}/v1/audio/translations`;
    const headers = { authorization: `Bearer ${account.api_key}` };
    const reply = await fetch(url, { method: "POST", headers, body: formOf({ model: "whisper-1" }) });
    expect(reply.status).toBe(200);
    expect(node.requests.at(-1)!.path).toBe("/v1/audio/translations");
    expect(await rowsOf(account)).toMatchObject([{ endpoint: "/v1/audio/translations", input: 2 }]);
  });

  test.each([
    ["OpenAI's", "", ["Please pay", " the toll."], 12],
    ["vLLM's", "vllm", [...fox.slice(0, -1).split(/(?= )/), "."], 2],
    ["none", "whole", [" Please pay the toll."], 2],
  ])("events are OpenAI's where the node's are %s", async (_, prompt, deltas, seconds) => {
    const account = await gateway.account();
    const reply = await hear(account.api_key, { stream: "true", prompt });
    expect(reply.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    const events = eventsOf(await reply.text());
    const of = (type: string) => events.filter((event) => event["type"] === `transcript.text.${type}`);
    expect(of("delta").map(({ delta }) => delta)).toEqual(deltas);
    expect(of("segment").map(({ speaker }) => speaker)).toEqual(prompt === "" ? ["A"] : []);
    const usage = { type: "duration", seconds };
    expect(events.at(-1)).toEqual({ type: "transcript.text.done", text: deltas.join(""), usage });
    expect(await rowsOf(account)).toMatchObject([{ input: seconds, billed_tokens: seconds * perSecond }]);
  });

  test("a node that claims to have heard more than the file can hold is not believed", async () => {
    const account = await gateway.account();
    const { usage } = (await (await hear(account.api_key, { prompt: "lies" })).json()) as {
      usage: { seconds: number };
    };
    expect(usage.seconds).toBe(2);
    expect(await rowsOf(account)).toMatchObject([{ input: 2, billed_tokens: 2 * perSecond }]);
  });

  test.each([
    ["in parts", "hold", 1],
    ["in segments", "hold segments", 2],
  ])("a client that leaves pays for what it has heard %s", async (_, prompt, seconds) => {
    const account = await gateway.account();
    const { left } = node;
    const before = await hear(account.api_key, { prompt: "hold" }, undefined, {
      signal: AbortSignal.timeout(300),
    }).catch((error: Error) => error.name);
    expect(before).toBe("TimeoutError");
    const leaves = new AbortController();
    const long = recording("short.mp3"); // its length is by its bytes, as nothing in its head tells it
    const padded = Uint8Array.from(Buffer.concat([long, Buffer.alloc(64_000 * 60)]));
    const stream = { stream: "true", prompt };
    const reply = await hear(account.api_key, stream, padded, { signal: leaves.signal });
    await reply.body!.getReader().read();
    leaves.abort();
    await eventually("the reply is charged", async () => (await rowsOf(account)).length === 1);
    expect(await rowsOf(account)).toMatchObject([
      { input: seconds, billed_tokens: seconds * perSecond, estimated: true },
    ]);
    await eventually("its node was told", async () => node.left > left);
    await eventually("nothing is left on the disk", async () => uploads().length === 0);
    node.release();
  });

  test("what is wrong is named, and costs nothing", async () => {
    const account = await gateway.account();
    const { api_key: key } = account;
    const none = Uint8Array.from(Buffer.from("no audio"));
    const cases: [Promise<Response>, number, string][] = [
      [hear(key, {}, null), 400, "file is required: a part with the content of an audio file"],
      [hear(key, {}, new Uint8Array()), 400, "file is required: a part with the content of an audio file"],
      [hear(key, { model: "tts-1" }), 400, "model must be one that hears: tts-1 is for speech"],
      [hear(key, { model: "other" }), 400, "The model `other` does not exist. GET /v1/models lists the models."],
      [
        hear(key, { response_format: "xml" }),
        400,
        "response_format must be one of json, text, srt, verbose_json, vtt, diarized_json",
      ],
      [hear(key, { stream: "true", response_format: "srt" }), 400, "stream must be false with response_format srt"],
      [hear(key, { stream: "maybe" }), 400, "stream must be true or false"],
      [hear(key, { temperature: "hot" }), 400, "temperature must be a number from 0 to 1"],
      [hear(key, { 'a"b': "1" }), 400, '"a\\"b" is not a field of this form'],
      [hear(key, { prompt: "x".repeat(20_000) }), 400, "prompt is too long"],
      [
        hear(key, { response_format: "text" }),
        400,
        "response_format: the model `whisper-1` does not give this form here.",
      ],
      [hear(key, {}, none), 400, "file: the model `whisper-1` cannot read it, and it has no length: is it audio?"],
      [hear(key, { prompt: "vllm" }, none), 400, "file: the model `whisper-1` cannot read this audio."],
      [hear(key, {}, undefined, { body: "{}" }), 400, "Audio is uploaded as multipart/form-data"],
      [hear("sk-tg-none"), 401, "Invalid API key provided"],
    ];
    for (const [reply, status, message] of cases) expect(await messageOf(await reply)).toEqual([status, message]);
    await gateway.expectUncharged(account);
    await eventually("nothing is left on the disk", async () => uploads().length === 0);
  });

  test("a file of more than 200 MiB is refused before it has come, and while it comes", async () => {
    const { api_key: key } = await gateway.account();
    const declared = await hear(key, {}, new Uint8Array(201 * 1024 * 1024));
    expect(await messageOf(declared)).toEqual([413, "A file may have 200 MiB"]);
  });
});

describe("speech", () => {
  test("is the node's audio in its type, by the character", async () => {
    const account = await gateway.account();
    const reply = await speak(account.api_key, { input: "Zoll 🚧", instructions: "whisper" });
    expect([reply.status, reply.headers.get("content-type")]).toEqual([200, "audio/wav"]);
    const whole = recording("local-tts-wav.http");
    const audio = whole.subarray(whole.indexOf("\r\n\r\n") + 4);
    expect(Buffer.from(await reply.bytes()).equals(audio)).toBe(true);
    expect(node.requests.at(-1)!.fields).toEqual({
      model: "piper",
      voice: "alloy",
      input: "Zoll 🚧",
      instructions: "whisper",
    });
    const events = eventsOf(await (await speak(account.api_key, { input: "Zoll", stream_format: "sse" })).text());
    const parts = events.filter(({ type }) => type === "speech.audio.delta").map((event) => event["audio"]);
    expect(Buffer.concat(parts.map((part) => Buffer.from(part, "base64"))).equals(audio)).toBe(true);
    const usage = { input_tokens: 4, output_tokens: 0, total_tokens: 4 };
    expect(events.at(-1)).toEqual({ type: "speech.audio.done", usage });
    const row = { endpoint: "/v1/audio/speech", model: "tts-1", output: 0, estimated: false };
    expect(await rowsOf(account)).toEqual([
      { ...row, input: 4, billed_tokens: 4 * perCharacter },
      { ...row, input: 6, billed_tokens: 6 * perCharacter },
    ]);
  });

  test("comes while it is spoken; a client that leaves pays for what it has heard", async () => {
    const account = await gateway.account();
    const leaves = new AbortController();
    const input = `hold ${"x".repeat(95)}`;
    const reply = await speak(account.api_key, { input, response_format: "wav" }, { signal: leaves.signal });
    expect((await reply.body!.getReader().read()).value!.length).toBe(44_100);
    leaves.abort();
    await eventually("the reply is charged", async () => (await rowsOf(account)).length === 1);
    expect(await rowsOf(account)).toMatchObject([{ input: 15, billed_tokens: 15 * perCharacter, estimated: true }]);
    node.release();
  });

  test("that its node breaks off is broken off, and free", async () => {
    const account = await gateway.account();
    const reply = await speak(account.api_key, { input: "hold, then break off" });
    node.release();
    expect(await reply.bytes().catch((error: Error) => error)).toBeInstanceOf(Error);
    await gateway.expectUncharged(account);
  });

  test("presets say voice and speed and have their own price; another model stands in for one that is away", async () => {
    const account = await gateway.account();
    const reply = await speak(account.api_key, { model: "slow", input: "Zoll", voice: undefined, speed: 2 });
    expect((await reply.bytes()).length).toBeGreaterThan(20_000);
    expect(node.requests.at(-1)!.fields).toEqual({
      model: "piper",
      voice: "joe",
      response_format: "wav",
      speed: 0.5,
      input: "Zoll",
    });
    const other = await speak(account.api_key, { model: "away", input: "Zoll" });
    expect([other.status, other.headers.get("x-fallback-from")]).toEqual([200, "away"]);
    await other.bytes();
    expect(await rowsOf(account)).toMatchObject([
      { model: "tts-1", billed_tokens: 4 * perCharacter },
      { model: "slow", billed_tokens: 4 * 3 * perCharacter },
    ]);
  });

  test("what is wrong is named, and costs nothing", async () => {
    const account = await gateway.account();
    const cases: [object, string][] = [
      [{ input: "" }, 'input must be a text of 1 to 100000 characters, is ""'],
      [{ input: "x".repeat(100_001) }, "input must have at most 100000 characters"],
      [{ input: "a", model: "whisper-1" }, "model must be one that speaks: whisper-1 is for transcriptions"],
      [{ input: "a", response_format: "mp3" }, "response_format: the model `tts-1` does not give this form here."],
      [{ input: "a", speed: 9 }, "speed must be a number from 0.25 to 4, is 9"],
    ];
    for (const [body, message] of cases)
      expect(await messageOf(await speak(account.api_key, body))).toEqual([400, message]);
    await gateway.expectUncharged(account);
  });
});

test("audio in messages goes to models that read it, as it came, and costs what the node counts", async () => {
  const account = await gateway.account();
  const data = talk.toString("base64");
  const ask = (model: string, audio: unknown) =>
    fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${account.api_key}` },
      body: JSON.stringify({
        model,
        messages: [{ role: "user", content: [{ type: "input_audio", input_audio: audio }] }],
      }),
    });
  expect(await (await ask("talks", { data, format: "mp3" })).json()).toMatchObject({
    choices: [{ message: { content: "You said: pay." } }],
    usage: { prompt_tokens: 77 },
  });
  expect(node.requests.at(-1)!.fields["messages"]).toEqual([
    { role: "user", content: [{ type: "input_audio", input_audio: { data, format: "mp3" } }] },
  ]);
  const at = "messages[0].content[0].input_audio";
  expect(await messageOf(await ask("talks", { data: "?", format: "mp3" }))).toEqual([
    400,
    `${at}.data must be audio in base64`,
  ]);
  expect(await messageOf(await ask("talks", { data }))).toEqual([
    400,
    `${at}.format must be the name of a format, such as wav or mp3`,
  ]);
  expect(await messageOf(await ask("deaf", { data, format: "mp3" }))).toEqual([
    400,
    `${at}: the model deaf does not read audio`,
  ]);
  const long = await ask("talks", { data: "A".repeat(2_000_000), format: "wav" });
  expect([long.status, JSON.stringify(node.requests.at(-1)!.fields).length]).toEqual([200, expect.any(Number)]);
  expect(JSON.stringify(node.requests.at(-1)!.fields).length).toBeGreaterThan(2_000_000);
});

describe("money and rights", () => {
  test("no more is begun than the balance holds", async () => {
    const { api_key: key } = await gateway.account(100_000);
    const [status, message] = await messageOf(await speak(key, { input: "x".repeat(2_000) }));
    expect([status, message]).toEqual([429, expect.stringContaining("Quota")]);
    const minute = Uint8Array.from(Buffer.concat([talk, Buffer.alloc(64_000 * 60)]));
    expect((await hear(key, {}, minute)).status).toBe(429);
    expect((await hear(key)).status).toBe(200);
  });

  test("keys may be kept from them, and a disabled account and a revoked key hear nothing", async () => {
    const account = await gateway.account();
    const { email } = account;
    const narrow = await gateway.makeKey(email, { name: "narrow", models: ["whisper-1"] });
    expect((await speak(narrow.api_key, { input: "Zoll" })).status).toBe(403);
    expect((await hear(narrow.api_key)).status).toBe(200);
    await gateway.revokeKey(email, narrow.id);
    expect((await hear(narrow.api_key)).status).toBe(401);
    await gateway.cli("accounts", "disable", email);
    expect([(await hear(account.api_key)).status, (await speak(account.api_key, { input: "a" })).status]).toEqual([
      401, 401,
    ]);
  });

  test("a quote tells what a text would cost, and takes no forms", async () => {
    const { api_key: key } = await gateway.account();
    const quote = (body: object, endpoint = "") =>
      fetch(`${gateway.url}/v1/quote${endpoint}`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}` },
        body: JSON.stringify(body),
      });
    const spoken = await quote({ model: "tts-1", voice: "alloy", input: "Zoll 🚧" });
    expect(await spoken.json()).toMatchObject({ input_tokens: 6, exact: true, price_max: 6 * perCharacter });
    expect((await quote({ fields: [["model", "whisper-1"]] }, "?endpoint=/v1/audio/transcriptions")).status).toBe(400);
  });

  test("lists tell kinds and prices", async () => {
    const { api_key: key } = await gateway.account();
    const reply = await fetch(`${gateway.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
    const { data } = (await reply.json()) as { data: Record<string, any>[] };
    expect(data.map(({ id, kind, pricing, architecture }) => [id, kind, pricing, architecture.modality])).toMatchObject(
      [
        ["whisper-1", "transcription", { price_per_minute: "6" }, "audio->text"],
        ["tts-1", "speech", { price_per_1k_characters: "3" }, "text->audio"],
        ["slow", "speech", { price_per_1k_characters: "9" }, "text->audio"],
        ["away", "speech", { price_per_1k_characters: "0" }, "text->audio"],
        ["talks", "chat", { prompt: "0" }, "text+audio->text"],
        ["deaf", "chat", { prompt: "0" }, "text->text"],
      ],
    );
    expect(data[1]!["pricing"]["prompt"]).toBeUndefined();
  });
});
