// Files over HTTP: uploaded as they come, found by their account only, read by models, counted exactly over kills. Official
// clients do the same in test/clients/files.test.ts.
import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { eventually } from "../fixtures/eventually.ts";
import type { Account } from "../fixtures/gateway-process.ts";
import { pdf } from "../fixtures/pdf.ts";
import { pixelBase64, pixelUrl } from "../fixtures/pictures.ts";
import { type ErrorReply, post } from "../fixtures/requests.ts";
import { Stack, useStack } from "../fixtures/stack.ts";

const bounds = "[files]\nfile_max_mib = 8\naccount_max_mib = 12\ntotal_max_mib = 30\n";
const stack = useStack({ config: bounds });
type File = { id: string; bytes: number; filename: string; purpose: string; created_at: number; expires_at: number };

const ask = (account: Account, path = "", init: RequestInit = {}, on = stack): Promise<Response> =>
  fetch(`${on.gateway.url}/v1/files${path}`, {
    ...init,
    headers: { authorization: `Bearer ${account.api_key}`, ...(init.headers as Record<string, string>) },
  });

function form(fields: Record<string, string | Blob>, name = "a.jsonl"): FormData {
  const made = new FormData();
  for (const [field, value] of Object.entries(fields)) {
    if (value instanceof Blob) made.append(field, value, name);
    else made.append(field, value);
  }
  return made;
}

const upload = async (
  account: Account,
  content: string | Uint8Array<ArrayBuffer>,
  more = {},
  on = stack,
): Promise<Response> =>
  ask(account, "", { method: "POST", body: form({ purpose: "user_data", file: new Blob([content]), ...more }) }, on);
const uploaded = async (
  account: Account,
  content: string | Uint8Array<ArrayBuffer>,
  more = {},
  on = stack,
): Promise<File> => {
  const reply = await upload(account, content, more, on);
  const body = (await reply.json()) as File;
  expect({ status: reply.status, body }).toMatchObject({ status: 200 });
  return body;
};
const refusedAs = async (reply: Response): Promise<[number, string]> => [
  reply.status,
  ((await reply.json()) as ErrorReply).error.message,
];
const onDisk = (on = stack): string[] => {
  const folder = join(on.gateway.dataFolder, "files");
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((path) => path.includes("/"))
    .map((path) => path.split("/")[1]!)
    .sort();
};
const MiB = 1024 ** 2;

describe("a file", () => {
  test("is its account's alone, whichever form its headers ask for", async () => {
    const [ada, bob] = [await stack.gateway.account(), await stack.gateway.account()];
    const file = await uploaded(ada, "one\ntwo\n", { purpose: "batch" });
    expect(file).toMatchObject({
      object: "file",
      bytes: 8,
      filename: "a.jsonl",
      purpose: "batch",
      status: "processed",
    });
    expect(file.expires_at - file.created_at).toBe(30 * 86_400);
    expect(await (await ask(ada, `/${file.id}`)).json()).toEqual(file);
    const content = await ask(ada, `/${file.id}/content`);
    expect(await content.text()).toBe("one\ntwo\n");
    expect(content.headers.get("content-type")).toBe("application/octet-stream");
    expect(content.headers.get("content-disposition")).toBe("attachment; filename*=UTF-8''a.jsonl");
    for (const path of [`/${file.id}`, `/${file.id}/content`]) expect((await ask(bob, path)).status).toBe(404);
    expect((await ask(bob, `/${file.id}`, { method: "DELETE" })).status).toBe(404);
    const anthropic = { headers: { "anthropic-version": "2023-06-01" } };
    expect(await (await ask(ada, `/${file.id}`, anthropic)).json()).toEqual({
      type: "file",
      id: file.id,
      size_bytes: 8,
      created_at: expect.stringMatching(/^\d{4}-.*Z$/),
      expires_at: expect.stringMatching(/^\d{4}-.*Z$/),
      filename: "a.jsonl",
      mime_type: expect.any(String),
      downloadable: true,
    });
    expect(await (await ask(bob, `/${file.id}`, anthropic)).json()).toMatchObject({ type: "error" });
    expect(await (await ask(ada, `/${file.id}`, { method: "DELETE" })).json()).toEqual({
      id: file.id,
      object: "file",
      deleted: true,
    });
    expect((await ask(ada, `/${file.id}`)).status).toBe(404);
    expect((await ask(ada, `/${file.id}/content`)).status).toBe(404);
  });

  test("may be cut anywhere between the pieces in which it comes, and have any bytes", async () => {
    const ada = await stack.gateway.account();
    const boundary = "cut-here";
    const content = Buffer.from(
      `\r\n--cut-her\r\n--\r\n\0\xff${"-".repeat(50)}\r\n--cut-here-and-on`.slice(0, -7),
      "latin1",
    );
    const tail = content.subarray(0, content.length - `\r\n--cut-here`.length);
    const body = Buffer.concat([
      Buffer.from(`--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="a \\"b\\".bin"\r\n\r\n`),
      tail,
      Buffer.from(
        `\r\n--${boundary}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nvision\r\n--${boundary}--\r\n`,
      ),
    ]);
    const { hostname, port } = new URL(stack.gateway.url);
    const socket = connect(Number(port), hostname);
    socket.setNoDelay(true);
    let answer = "";
    socket.on("data", (data) => (answer += data));
    socket.write(
      `POST /v1/files HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${ada.api_key}\r\ncontent-length: ${body.length}\r\n` +
        `connection: close\r\ncontent-type: multipart/form-data; charset=utf-8; boundary="${boundary}"\r\n\r\n`,
    );
    for (const byte of body) {
      socket.write(Buffer.of(byte));
      await new Promise((resolve) => setImmediate(resolve));
    }
    await new Promise((resolve) => socket.on("close", resolve));
    const file = JSON.parse(answer.slice(answer.indexOf("{"), answer.lastIndexOf("}") + 1)) as File;
    expect(file).toMatchObject({ filename: 'a "b".bin', purpose: "vision", bytes: tail.length });
    const reply = await ask(ada, `/${file.id}/content`);
    expect(Buffer.from(await reply.arrayBuffer()).equals(tail)).toBe(true);
  });

  test("that cannot be taken is refused by the field, and leaves nothing", async () => {
    const ada = await stack.gateway.account();
    const before = onDisk();
    const send = (body: string | FormData, headers = {}) => ask(ada, "", { method: "POST", body, headers });
    const file = new Blob(["x"]);
    const multipart = { "content-type": "multipart/form-data; boundary=b" };
    const disposition = `--b\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\n`;
    const cases: [() => Promise<Response>, number, string][] = [
      [() => send(form({ file })), 400, "purpose is required: one of 'batch', 'user_data', 'vision'"],
      [() => send(form({ file, purpose: "fine-tune" })), 400, "purpose: 'fine-tune' is not served here"],
      [() => send(form({ purpose: "batch" })), 400, "file is required"],
      [() => send(form({ purpose: "batch", file: "no part of its own" })), 200, ""],
      [() => send(JSON.stringify({ purpose: "batch" })), 400, "A file is uploaded as multipart/form-data"],
      [() => send("nothing", multipart), 400, "it ended early"],
      [() => send(`${disposition}abc`, multipart), 400, "it ended early"],
      [() => send(`--b\r\n\r\n`, multipart), 400, "it ended early"],
      [() => send(`--b\r\n${"x".repeat(5_000)}`, multipart), 400, "headers are too long"],
      [() => send(`--b\r\nx: y\r\n\r\n`, multipart), 400, "a part has no name"],
      [() => send(`--bxy`, multipart), 400, "line's end"],
      [() => send(form({ file, purpose: "x".repeat(2_000) })), 400, "purpose is too long"],
      [() => send(form({ file, purpose: "batch" }, "x".repeat(300))), 400, "its name may have 255 characters"],
      ...(["", "59", "9999999", "1e4", "-1"] as const).map((seconds): [() => Promise<Response>, number, string] => [
        () =>
          send(
            form({ file, purpose: "batch", "expires_after[anchor]": "created_at", "expires_after[seconds]": seconds }),
          ),
        400,
        "expires_after[seconds] must be a whole number from 3600 to 2592000",
      ]),
      [() => send(form({ file, purpose: "batch", "expires_after[seconds]": "3600" })), 400, "expires_after[anchor]"],
      [
        () => send(form({ purpose: "batch", file: new Blob([new Uint8Array(9 * MiB)]) })),
        413,
        "A file may have 8388608 bytes",
      ],
      [() => ask(ada, "?limit=0"), 400, "limit"],
      [() => ask(ada, "?order=x"), 400, "order"],
      [
        () => fetch(`${stack.gateway.url}/v1/files`, { method: "POST", body: form({ file, purpose: "batch" }) }),
        401,
        "Invalid API key",
      ],
    ];
    for (const [sent, status, message] of cases) {
      const reply = await sent();
      const text = await reply.text();
      expect({ status: reply.status, text }).toEqual({ status, text: expect.stringContaining(message) });
      if (status === 200) await ask(ada, `/${(JSON.parse(text) as File).id}`, { method: "DELETE" });
    }
    expect(onDisk()).toEqual(before);
  });

  test("expires when its sender says, and lists go page by page in both forms", async () => {
    const ada = await stack.gateway.account();
    const expiry = { "expires_after[anchor]": "created_at", "expires_after[seconds]": "3600" };
    const made = [
      await uploaded(ada, "1", expiry),
      await uploaded(ada, "2"),
      await uploaded(ada, "3", { purpose: "vision" }),
    ];
    expect(made[0]!.expires_at - made[0]!.created_at).toBe(3_600);
    const list = async (query: string, headers = {}) =>
      (await (await ask(ada, query, { headers })).json()) as { data: File[]; has_more: boolean; last_id: string };
    const ids = ({ data }: { data: File[] }) => data.map(({ id }) => id);
    const newest = made.map(({ id }) => id).toReversed();
    expect(ids(await list(""))).toEqual(newest);
    expect(ids(await list("?purpose=vision"))).toEqual([made[2]!.id]);
    const first = await list("?limit=2");
    expect([ids(first), first.has_more]).toEqual([newest.slice(0, 2), true]);
    const rest = await list(`?limit=2&after=${first.last_id}`);
    expect([ids(rest), rest.has_more]).toEqual([newest.slice(2), false]);
    const anthropic = { "anthropic-version": "2023-06-01" };
    expect(ids(await list(`?limit=1&after_id=${newest[0]!}`, anthropic))).toEqual([newest[1]!]);
    const before = await list(`?limit=1&before_id=${newest[2]!}`, anthropic);
    expect([ids(before), before.has_more]).toEqual([[newest[1]!], true]);
  });

  test("is bounded with the others of its account and of all, and the bounds change with a reload", async () => {
    await using small = await Stack.start({ config: bounds });
    const [ada, bob, eve] = await Promise.all([1, 2, 3].map(() => small.gateway.account()));
    const seven = new Uint8Array(7 * MiB);
    const kept = await uploaded(ada!, seven, {}, small);
    expect(await refusedAs(await upload(ada!, seven, {}, small))).toEqual([
      413,
      expect.stringContaining("12582912 bytes together"),
    ]);
    await uploaded(bob!, seven, {}, small);
    await uploaded(bob!, new Uint8Array(5 * MiB), {}, small);
    await uploaded(eve!, seven, {}, small);
    expect((await upload(ada!, new Uint8Array(5 * MiB), {}, small)).status).toBe(507);
    await ask(ada!, `/${kept.id}`, { method: "DELETE" }, small);
    await uploaded(ada!, new Uint8Array(5 * MiB), {}, small);
    await small.configure("[files]\nfile_max_mib = 1\n");
    await small.gateway.reload();
    expect((await upload(eve!, new Uint8Array(2 * MiB), {}, small)).status).toBe(413);
  });

  test("whose upload is cut, by its client or by a kill, leaves nothing; what was answered stays", async () => {
    await using killed = await Stack.start();
    const ada = await killed.gateway.account();
    const file = await uploaded(ada, "kept", {}, killed);
    const begin = async () => {
      const { hostname, port } = new URL(killed.gateway.url);
      const socket = connect(Number(port), hostname);
      socket.on("error", () => {});
      socket.write(
        `POST /v1/files HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${ada.api_key}\r\ncontent-length: 1000000\r\n` +
          `content-type: multipart/form-data; boundary=b\r\n\r\n--b\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\nabc`,
      );
      await eventually("it comes", async () => onDisk(killed).some((name) => name.endsWith(".new")));
      return socket;
    };
    (await begin()).destroy();
    await eventually("it is gone", async () => onDisk(killed).length === 1);
    await begin();
    await killed.gateway.kill("SIGKILL");
    expect(onDisk(killed)).toHaveLength(2);
    await killed.gateway.restart();
    expect(onDisk(killed)).toEqual([file.id]);
    expect(await (await ask(ada, `/${file.id}/content`, {}, killed)).text()).toBe("kept");
  });

  test("is in its account's export and goes with its erasure", async () => {
    const ada = await stack.gateway.account();
    const file = await uploaded(ada, "mine");
    expect((await stack.gateway.cli<{ files: object[] }>("accounts", "export", ada.email)).files).toMatchObject([
      { id: file.id, filename: "a.jsonl", bytes: 4, purpose: "user_data", expires_at: expect.stringMatching(/Z$/) },
    ]);
    await stack.gateway.cli("accounts", "delete", ada.email, "--yes");
    expect(onDisk()).not.toContain(file.id);
    const bob = await stack.gateway.account();
    const left = await uploaded(bob, "mine");
    await stack.gateway.kill("SIGTERM");
    await stack.gateway.cli("accounts", "delete", bob.email, "--yes"); // no server runs
    expect(onDisk()).not.toContain(left.id);
    await stack.gateway.restart();
  });
});

describe("a model", () => {
  const model = "core-3";
  const contentOf = {
    chat: (text: string, image: string, document: string) => ({
      path: "/v1/chat/completions",
      body: {
        model,
        messages: [
          {
            role: "user",
            content: [
              { type: "text", text },
              { type: "file", file: { file_id: document } },
              { type: "file", file: { file_id: image } },
            ],
          },
        ],
      },
    }),
    responses: (text: string, image: string, document: string) => ({
      path: "/v1/responses",
      body: {
        model,
        input: [
          {
            role: "user",
            content: [
              { type: "input_text", text },
              { type: "input_image", file_id: image },
              { type: "input_file", file_id: document },
            ],
          },
        ],
      },
    }),
    messages: (text: string, image: string, document: string) => ({
      path: "/v1/messages",
      body: {
        model,
        max_tokens: 100,
        messages: [
          {
            role: "user",
            content: [
              { type: "text", text },
              { type: "image", source: { type: "file", file_id: image } },
              { type: "document", source: { type: "file", file_id: document } },
            ],
          },
        ],
      },
    }),
  };
  const dialects = Object.keys(contentOf) as (keyof typeof contentOf)[];

  test.each([1, 2])("reads uploaded files by their ids in every dialect, with %d threads", async (threads) => {
    await using site = await Stack.start({ threads });
    const ada = await site.gateway.account();
    const image = await uploaded(ada, Buffer.from(pixelBase64, "base64"), { purpose: "vision" }, site);
    const text = await uploaded(ada, "the text of a file", {}, site);
    const document = await uploaded(ada, Buffer.from(pdf("Hello")), {}, site);
    for (const dialect of dialects) {
      const marker = site.node.marker("text");
      const { path, body } = contentOf[dialect](
        `what is it? [[${marker}]]`,
        dialect === "chat" ? text.id : image.id,
        document.id,
      );
      const reply = await post(site, ada, body, { path });
      expect({ dialect, status: reply.status, body: await reply.json() }).toMatchObject({ dialect, status: 200 });
      const given = JSON.stringify((await site.node.request(marker)).body);
      expect(given).toContain("\\nHello\\n</document>");
      expect(given).toContain(dialect === "chat" ? "the text of a file" : pixelUrl);
    }
  });

  test("gets nothing where a file cannot be had, and nothing is charged", async () => {
    const [ada, bob] = [await stack.gateway.account(), await stack.gateway.account()];
    const image = await uploaded(ada, Buffer.from(pixelBase64, "base64"), { purpose: "vision" });
    const batch = await uploaded(ada, "{}", { purpose: "batch" });
    const bytes = await uploaded(ada, new Uint8Array([0, 1, 2, 255]));
    for (const dialect of dialects) {
      const marker = stack.node.marker("text");
      const refusedFor = async (account: Account, file: string, image: string) => {
        const { path, body } = contentOf[dialect](`[[${marker}]]`, image, file);
        return refusedAs(await post(stack, account, body, { path }));
      };
      const text = (await uploaded(ada, "text")).id;
      const second = dialect === "chat" ? text : image.id;
      expect(await refusedFor(bob, text, second)).toEqual([400, expect.stringContaining("No file with id 'file-")]);
      expect(await refusedFor(ada, "file-1", second)).toEqual([400, "No file with id 'file-1' found"]);
      expect(await refusedFor(ada, batch.id, second)).toEqual([
        400,
        expect.stringContaining("is for batch: upload it with the purpose"),
      ]);
      expect(await refusedFor(ada, bytes.id, second)).toEqual([400, expect.stringContaining("is no PDF or text file")]);
      if (dialect !== "chat")
        expect(await refusedFor(ada, text, text)).toEqual([400, expect.stringContaining("is no image")]);
    }
    expect([await stack.gateway.usage(ada.email), await stack.gateway.usage(bob.email)]).toEqual([[], []]);
  });
});

test("a gigabyte goes to disk and back in flat memory", async () => {
  await using site = await Stack.start();
  const ada = await site.gateway.account();
  const size = 1_000 * MiB;
  const head = `--b\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\n`;
  const tail = `\r\n--b\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nbatch\r\n--b--\r\n`;
  const peak = () => Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${site.gateway.pid}/status`, "utf8"))![1]) * 1024;
  if (!existsSync(`/proc/${site.gateway.pid}/status`))
    return console.log("skipped: no /proc shows a process's memory here");
  const before = peak();
  const piece = Buffer.alloc(MiB, "0123456789abcdef");
  async function* content() {
    yield Buffer.from(head);
    for (let sent = 0; sent < size; sent += MiB) yield piece;
    yield Buffer.from(tail);
  }
  const headers = { "content-type": "multipart/form-data; boundary=b" };
  const reply = await ask(ada, "", { method: "POST", body: content as never, headers }, site);
  const file = (await reply.json()) as File;
  expect(file).toMatchObject({ bytes: size });
  let read = 0;
  for await (const bytes of (await ask(ada, `/${file.id}/content`, {}, site)).body!) read += bytes.length;
  expect(read).toBe(size);
  expect(peak() - before).toBeLessThan(250 * MiB);
});
