// Finds ports on which nothing listens.

/** A port that no other program can take until it is released. */
export type HeldPort = Readonly<{ port: number; release(): void }>;

/** A port for `--port 0`, to release right before its own server listens. Throws the system's error. */
export function holdFreePort(host: string): HeldPort {
  const listener = Bun.listen({ hostname: host, port: 0, socket: { data() {} } });
  return { port: listener.port, release: () => listener.stop(true) };
}

/** A port for a program that needs a number. Another program may take it first. */
export function freePort(host: string): number {
  const { port, release } = holdFreePort(host);
  release();
  return port;
}

/** Throws where the address is in use. Relays share their port, so their own listening would show nothing. */
export function checkPortFree(host: string, port: number): void {
  Bun.listen({ hostname: host, port, socket: { data() {} } }).stop(true);
}
