// Free ports: a port that was found is kept from others until its own server listens.
import { expect, test } from "bun:test";
import { holdFreePort } from "../../src/http/free-port.ts";

const hostname = "127.0.0.1";
const serve = (port: number) => Bun.serve({ hostname, port, fetch: () => new Response("own") });

test("a held port is nobody else's, and its own server's in the moment after it is released", async () => {
  for (let round = 0; round < 100; round++) {
    const { port, release } = holdFreePort(hostname);
    expect(() => serve(port)).toThrow("port");
    release();
    const server = serve(port);
    expect(server.port).toBe(port);
    await server.stop(true);
  }
});
