// What the comparison with other gateways stands on: requests as each expects them, those that are missing named, a node
// that reads any client's JSON, and a word about a load that had nothing left to give.
import { expect, test } from "bun:test";
import { tokenBytesMin } from "../../bench/answer.ts";
import { clientDialects } from "../../bench/dialect.ts";
import { loadShareNote } from "../../bench/load-share.ts";
import { startPacedNode } from "../../bench/paced-node.ts";
import { peerMissing, peerNames, peerNotes } from "../../bench/peers.ts";
import { RequestSource, type Subject } from "../../bench/subject.ts";

const subject: Subject = {
  name: "direct",
  port: 8080,
  dialect: clientDialects.chat,
  keys: ["a", "b"],
  pids: [],
  stop: () => Promise.resolve(),
};
const ask = { model: "core-3", prompt: "Count.", outputTokensMax: 5, stream: true };

test("a request has the lines and the model name of its subject, and the keys take turns", () => {
  const plain = new RequestSource(subject, ask);
  expect(plain.next().toString()).toContain("authorization: Bearer a\r\ncontent-type:");
  expect(plain.next().toString()).toContain("authorization: Bearer b\r\ncontent-type:");
  expect(plain.next().toString()).toContain('"model":"core-3"');
  const named = new RequestSource({ ...subject, model: "openai/bench", headers: ["x-one: 1", "x-two: 2"] }, ask);
  const [head, body] = named.next().toString().split("\r\n\r\n");
  expect(head).toContain("Bearer a\r\nx-one: 1\r\nx-two: 2\r\ncontent-type:");
  expect(head).toEndWith(`content-length: ${body!.length}`);
  expect(JSON.parse(body!)).toMatchObject({ model: "openai/bench", stream: true });
});

test("a peer is installed, or its absence names the command that installs it", () => {
  for (const name of peerNames) {
    const missing = peerMissing(name);
    if (missing !== null) expect(missing).toContain(`install.ts ${name}`);
  }
  expect(peerNotes(["direct", "nginx", "tollgate"])).toEqual([]);
});

test("the node streams to clients that write JSON with spaces, and reads a body however it is cut", async () => {
  const node = await startPacedNode({ tokens: 3, tokenBytes: tokenBytesMin, intervalMs: 0 });
  try {
    const body = JSON.stringify({ prompt: "x".repeat(300_000), stream: true }).replace('"stream":', '"stream": ');
    const reply = await fetch(`http://127.0.0.1:${node.port}/v1/chat/completions`, { method: "POST", body });
    expect(reply.headers.get("content-type")).toStartWith("text/event-stream");
    expect(await reply.text()).toEndWith("data: [DONE]\n\n");
    const two = "POST / HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}GET /v1/models HTTP/1.1\r\n\r\n";
    expect(
      await repliesTo(
        node.port,
        [...two].map((character) => character),
      ),
    ).toBe(2);
    expect(await repliesTo(node.port, [two])).toBe(2);
  } finally {
    await node.stop();
  }
}, 120_000);

/** Sends the parts one after the other; resolves to the number of replies when there are two. */
function repliesTo(port: number, parts: readonly string[]): Promise<number> {
  return new Promise((resolve, reject) => {
    let text = "";
    void Bun.connect({
      hostname: "127.0.0.1",
      port,
      socket: {
        async open(socket) {
          socket.setNoDelay(true);
          for (const part of parts) {
            socket.write(part);
            await Bun.sleep(0);
          }
        },
        data(socket, bytes) {
          text += bytes.toString("latin1");
          const replies = text.split("HTTP/1.1 200 OK").length - 1;
          if (replies < 2) return;
          resolve(replies);
          socket.end();
        },
        close: () => reject(new Error(`closed after ${text}`)),
      },
    });
  });
}

test("a load that had nothing left to give is named", () => {
  const idle = { way: "tollgate", node: 0.1, client: 0.2 };
  expect(loadShareNote([idle])).toContain("limit no figure");
  expect(loadShareNote([idle, { way: "nginx", node: 0.4, client: 0.95 }])).toContain("busy with nginx");
});
