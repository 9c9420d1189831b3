// A port of the loopback address that nobody listens on.

/** The system picks it; another process could take it before it is used, which the start of the server would report. */
export function freePort(): number {
  const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  const { port } = listener;
  listener.stop(true);
  return port;
}
