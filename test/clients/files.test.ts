// Official clients upload, list, read and delete files, and name them in requests; the node shows what it was given.
import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type Anthropic from "@anthropic-ai/sdk";
import type OpenAIClient from "openai";
import { runToEnd } from "../fixtures/children.ts";
import { installed, missing } from "../fixtures/optional.ts";
import { pdf } from "../fixtures/pdf.ts";
import { pixelBase64, pixelUrl } from "../fixtures/pictures.ts";
import { useStack } from "../fixtures/stack.ts";

const stack = useStack();
const model = "core-3";
const document = Buffer.from(pdf("Hello"));
const pixel = Buffer.from(pixelBase64, "base64");

async function expectGiven(marker: string): Promise<void> {
  const body = JSON.stringify((await stack.node.request(marker)).body);
  expect(body).toContain("\\nHello\\n</document>");
  expect(body).toContain(pixelUrl);
}

type OpenAIModule = { OpenAI: new (options: object) => OpenAIClient; toFile: typeof import("openai").toFile };

describe.each(["openai", "openai-6", "openai-5", "openai-4"])("%s", (name) => {
  const absent = missing(name, existsSync(join(import.meta.dir, "node_modules", name)), "run npm ci in test/clients");

  test.skipIf(absent)("files", async () => {
    const { OpenAI, toFile } = (await installed<OpenAIModule>(name, import.meta.dir))!;
    const { api_key } = await stack.gateway.account();
    const { files, responses } = new OpenAI({ baseURL: `${stack.gateway.url}/v1`, apiKey: api_key });
    const made = await files.create({ file: await toFile(Buffer.from("{}\n"), "lines.jsonl"), purpose: "batch" });
    expect(made).toMatchObject({ bytes: 3, filename: "lines.jsonl", purpose: "batch" });
    expect(await (await files.content(made.id)).text()).toBe("{}\n");
    const ids: string[] = [];
    for await (const file of files.list({ limit: 1 })) ids.push(file.id);
    expect(ids).toEqual([made.id]);
    const image = await files.create({ file: await toFile(pixel, "a.png"), purpose: "vision" });
    const read = await files.create({ file: await toFile(document, "a.pdf"), purpose: "user_data" });
    const marker = stack.node.marker("text");
    const content = [
      { type: "input_text", text: `what is it? [[${marker}]]` },
      { type: "input_image", file_id: image.id, detail: "auto" },
      { type: "input_file", file_id: read.id },
    ] as const;
    const answer = await responses.create({ model, input: [{ role: "user", content: [...content] }] });
    expect(answer.output_text).toBe("Hi there!");
    await expectGiven(marker);
  });
});

describe.each(["@anthropic-ai/sdk", "anthropic-0.137", "anthropic-0.60"])("%s", (name) => {
  const absent = missing(name, existsSync(join(import.meta.dir, "node_modules", name)), "run npm ci in test/clients");
  type Module = { default: new (options: object) => Anthropic; toFile: typeof import("@anthropic-ai/sdk").toFile };

  test.skipIf(absent)("files", async () => {
    const { default: Client, toFile } = (await installed<Module>(name, import.meta.dir))!;
    const { api_key } = await stack.gateway.account();
    const { files, messages } = new Client({ baseURL: stack.gateway.url, apiKey: api_key }).beta;
    const read = await files.upload({ file: await toFile(document, "a.pdf", { type: "application/pdf" }) });
    const image = await files.upload({ file: await toFile(pixel, "a.png", { type: "image/png" }) });
    expect(read).toMatchObject({ size_bytes: document.length, filename: "a.pdf", mime_type: "application/pdf" });
    const ids: string[] = [];
    for await (const file of files.list({ limit: 1 })) ids.push(file.id);
    expect(ids).toEqual([image.id, read.id]);
    expect(Buffer.from(await (await files.download(read.id)).arrayBuffer()).equals(document)).toBe(true);
    const marker = stack.node.marker("text");
    const answer = await messages.create({
      model,
      max_tokens: 100,
      betas: ["files-api-2025-04-14"],
      messages: [
        {
          role: "user",
          content: [
            { type: "image", source: { type: "file", file_id: image.id } },
            { type: "document", source: { type: "file", file_id: read.id } },
            { type: "text", text: `what is it? [[${marker}]]` },
          ],
        },
      ],
    });
    expect(answer.content).toMatchObject([{ text: "Hi there!" }]);
    await expectGiven(marker);
    expect(await files.delete(read.id)).toMatchObject({ id: read.id, type: "file_deleted" });
    expect(await files.retrieveMetadata(read.id).catch(({ status }: { status: number }) => status)).toBe(404);
  });
});

const python = process.env["TOLLGATE_PYTHON"] ?? join(import.meta.dir, ".venv/bin/python");
test.skipIf(missing("the Python clients", existsSync(python), "make test/clients/.venv with requirements.txt"))(
  "the official Python clients' files",
  async () => {
    const { api_key } = await stack.gateway.account();
    const markers = { responses: stack.node.marker("text"), messages: stack.node.marker("text") };
    const setup = { base: stack.gateway.url, key: api_key, markers };
    const stdin = JSON.stringify({ ...setup, pdf: document.toString("hex"), pixel: pixel.toString("hex") });
    const { code, stdout, stderr } = await runToEnd([python, join(import.meta.dir, "files_python.py")], { stdin });
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(JSON.parse(stdout)).toEqual(["Hi there!", "Hi there!"]);
    for (const marker of Object.values(markers)) await expectGiven(marker);
  },
);
