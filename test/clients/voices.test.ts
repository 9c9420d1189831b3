// The official OpenAI clients ask for transcriptions, whole and as events, and for speech while it is spoken, in all versions
// that are in use.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { runToEnd } from "../fixtures/children.ts";
import { GatewayProcess } from "../fixtures/gateway-process.ts";
import { missing } from "../fixtures/optional.ts";
import { recording, VoicesNode, voicesConfig } from "../fixtures/voices-node.ts";
import { clientsOf } from "./official-clients.ts";

setDefaultTimeout(120_000);

const node = new VoicesNode();
let gateway: GatewayProcess;
beforeAll(async () => {
  gateway = await GatewayProcess.start({ config: voicesConfig(node) });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  node[Symbol.dispose]();
});

const spoken = recording("local-tts-wav.http");
const audioBytes = spoken.length - spoken.indexOf("\r\n\r\n") - 4;

describe.each(clientsOf("chat"))("%s", (_, { module }) => {
  test("hears, in one piece and in events, and speaks", async () => {
    const { email, api_key } = await gateway.account();
    const OpenAI = module!["default"];
    const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: api_key, maxRetries: 0 });
    const hear = async (more: object) =>
      client.audio.transcriptions.create({
        model: "whisper-1",
        file: await module!["toFile"](recording("short.mp3"), "talk.mp3"),
        ...more,
      });
    expect((await hear({})).text).toBe(" Please pay the toll.");
    expect((await hear({ response_format: "verbose_json" })).segments).toHaveLength(1);
    expect(await hear({ response_format: "srt" })).toStartWith("1\n00:00:00,000 --> ");
    const events: { type: string; delta?: string; text?: string }[] = [];
    for await (const event of await hear({ stream: true })) events.push(event);
    expect(events.flatMap(({ delta }) => delta ?? []).join("")).toBe("Please pay the toll.");
    expect(events.at(-1)).toMatchObject({ type: "transcript.text.done", text: "Please pay the toll." });
    const speak = (more: object) =>
      client.audio.speech.create({ model: "tts-1", voice: "alloy", input: "Zoll", response_format: "wav", ...more });
    expect((await (await speak({})).arrayBuffer()).byteLength).toBe(audioBytes);
    const refused = await speak({ model: "whisper-1" }).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(OpenAI.BadRequestError);
    expect(refused.message).toContain("model must be one that speaks: whisper-1 is for transcriptions");
    expect((await gateway.usage(email)).map(({ input }) => input)).toEqual([4, 12, 2, 2, 2]);
  });
});

const python = process.env["TOLLGATE_PYTHON"] ?? join(import.meta.dir, ".venv/bin/python");
const has = existsSync(python) && Bun.spawnSync([python, "-c", "import openai"]).exitCode === 0;
const absent = missing("the Python client openai", has, "make test/clients/.venv with requirements.txt");

const program = `
import json, sys, openai
client = openai.OpenAI(base_url=sys.argv[1], api_key=sys.argv[2], max_retries=0)
def hear(**more):
    return client.audio.transcriptions.create(model="whisper-1", file=open(sys.argv[3], "rb"), **more)
said = [hear().text, hear(response_format="verbose_json").duration, hear(response_format="srt")]
events = [event.type for event in hear(stream=True)]
audio = 0
with client.audio.speech.with_streaming_response.create(
    model="tts-1", voice="alloy", input="Zoll", response_format="wav"
) as speech:
    for chunk in speech.iter_bytes():
        audio += len(chunk)
try:
    client.audio.transcriptions.create(model="tts-1", file=open(sys.argv[3], "rb"))
    refused = None
except openai.BadRequestError as error:
    refused = error.body["message"]
print(json.dumps([said, events, audio, refused]))
`;

test.skipIf(absent)("the Python client hears and speaks the same", async () => {
  const { api_key } = await gateway.account();
  const file = join(import.meta.dir, "../fixtures/voices/short.mp3");
  const { code, stdout, stderr } = await runToEnd([python, "-c", program, `${gateway.url}/v1`, api_key, file]);
  expect({ code, stderr }).toMatchObject({ code: 0 });
  expect(JSON.parse(stdout)).toEqual([
    [" Please pay the toll.", 1.091375, "1\n00:00:00,000 --> 00:00:01,000\nPlease pay the toll.\n"],
    [...Array<string>(2).fill("transcript.text.delta"), "transcript.text.segment", "transcript.text.done"],
    audioBytes,
    "model must be one that hears: tts-1 is for speech",
  ]);
});
