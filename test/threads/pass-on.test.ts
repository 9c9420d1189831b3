// An upload that is passed on to the main server ends with its exchange, even if nobody reads it.
import { afterEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { passOn } from "../../src/threads/pass-on.ts";

const folder = mkdtempSync(join(tmpdir(), "pass-on-"));
let server: Server | null = null;
afterEach(() => {
  server?.close();
  rmSync(folder, { recursive: true });
});

test("a body that nobody reads is let go of when the complete server has replied and closed", async () => {
  const unix = join(folder, "complete.sock");
  server = createServer((socket) => {
    socket.once("data", () => {
      socket.pause();
      // late enough that the upload waits for the full socket
      setTimeout(
        () =>
          socket.end("HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n", () =>
            socket.destroy(),
          ),
        300,
      );
    });
    socket.on("error", () => {}); // what was not read is a reset
  });
  await new Promise<void>((listening) => server!.listen(unix, listening));
  const letGo = Promise.withResolvers<void>();
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(new Uint8Array(1 << 20)),
    cancel: () => letGo.resolve(),
  });
  const request = new Request("http://gateway.example/v1/tokenize", { method: "POST", body });
  const passed = passOn(request, { unix, peer: null, body: null, ended: () => {} });
  await passed.then(
    (reply) => expect(reply.status).toBe(413),
    (error: Error) => expect(error).toBeInstanceOf(Error), // the reset may overtake the reply
  );
  await letGo.promise;
}, 120_000);
