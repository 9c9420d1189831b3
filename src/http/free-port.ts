// Ports that nothing listens on.

/** One for `--port 0`. Throws what the system says about the address. Another program may take the port before it is used. */
export function freePort(host: string): number {
  const listener = Bun.listen({ hostname: host, port: 0, socket: { data() {} } });
  const { port } = listener;
  listener.stop(true);
  return port;
}

/**
 * Throws what the system says where the address is taken. Relays share their port with whoever asks for it in the same
 * way, which may be another gateway's relays, so that their own listening would tell nothing.
 */
export function checkPortFree(host: string, port: number): void {
  Bun.listen({ hostname: host, port, socket: { data() {} } }).stop(true);
}
