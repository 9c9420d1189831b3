// Listening on an address: what the system says about one that cannot be had, in words.
import { CommandError } from "../../core/expected-error.ts";

/** Runs `start`. Throws CommandError where the address cannot be had. */
export function listen<Started>(host: string, port: number, start: () => Started): Started {
  try {
    return start();
  } catch (error) {
    throw cannotListen(host, port, error);
  }
}

export function cannotListen(host: string, port: number, error: unknown): CommandError {
  const { code, message } = error as Error & { code?: string };
  if (code === "EADDRINUSE") {
    return new CommandError(`port ${port} on ${host} is taken by another program; choose another with --port N`);
  }
  if (code === "EACCES") return new CommandError(`port ${port} on ${host} is not allowed to this user`);
  return new CommandError(`cannot listen on ${host} port ${port}: ${message}`);
}
