// Finds ports on which nothing listens.

/** A port that no other program can take until it is released. */
export type HeldPort = Readonly<{ port: number; release(): void }>;

/**
 * One for `--port 0`, to be released when its own server listens next: whatever else asks the system for a port in the
 * meantime could be given the same. Throws what the system says about the address.
 */
export function holdFreePort(host: string): HeldPort {
  const listener = Bun.listen({ hostname: host, port: 0, socket: { data() {} } });
  return { port: listener.port, release: () => listener.stop(true) };
}

/** One for a program that takes a number. Another program may take the port before it is used. */
export function freePort(host: string): number {
  const { port, release } = holdFreePort(host);
  release();
  return port;
}

/**
 * Throws what the system says where the address is taken. Relays share their port with whoever asks for it in the same
 * way, which may be another gateway's relays, so that their own listening would tell nothing.
 */
export function checkPortFree(host: string, port: number): void {
  Bun.listen({ hostname: host, port, socket: { data() {} } }).stop(true);
}
