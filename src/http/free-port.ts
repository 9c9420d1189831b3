// A port that nothing listens on, for `--port 0`.

/** Throws what the system says about the address. Another program may take the port before it is used. */
export function freePort(host: string): number {
  const listener = Bun.listen({ hostname: host, port: 0, socket: { data() {} } });
  const { port } = listener;
  listener.stop(true);
  return port;
}
