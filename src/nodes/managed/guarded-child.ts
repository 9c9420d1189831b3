// A program that cannot outlive the gateway, even when the gateway is killed with `kill -9`. A shell stands between the
// two and holds the reading end of a pipe whose other end is ours. When the pipe ends, by a stop or by our death, the
// shell sends the program SIGTERM, and SIGKILL after a grace period; processes that the program leaves behind get the
// same. A parent-death signal of the kernel would need a helper program, works only on Linux, and gives no grace.
import { spawn } from "node:child_process";
import type { Readable } from "node:stream";
import type { Ms } from "../../core/types.ts";

export type ChildCommand = Readonly<{
  command: readonly string[];
  environment: Readonly<Record<string, string>>;
  /** Its working folder; null: the gateway's. */
  folder: string | null;
  /** Time between SIGTERM and SIGKILL, in whole seconds. */
  graceMs: Ms;
}>;

export interface GuardedChild {
  /** The shell's, whose child the program is. */
  readonly pid: number | undefined;
  readonly output: readonly [Readable, Readable];
  /** "exit code 1", "signal SIGSEGV", or why it did not start, once its children are gone. Never rejects. */
  readonly ended: Promise<string>;
  /** Asks it to end; `ended` settles when it has. */
  end(): void;
}

// $0 is the grace in seconds. The reader is a part of the shell; nothing is ever written, so `read` returns when the
// pipe ends. The shell has its own process group: Ctrl-C in a terminal does not reach the program, whose requests may
// finish. Processes that the program leaves behind are ended too: by SIGTERM, and by SIGKILL after the grace (without
// /proc, by SIGTERM alone). The shell prints nothing itself: after our death, a message about the program's end
// ("Terminated") would break the pipe and end the shell before its work is done.
const guard = `exec 3<&0
"$@" </dev/null 3<&- &
program=$!
{ while read -r line <&3; do :; done; kill -TERM "$program"; sleep "$0"; kill -KILL "$program"; } >/dev/null 2>&1 &
exec 3<&- >/dev/null 2>&1
wait "$program"
code=$?
find_left() {
  left=
  for stat in /proc/[0-9]*/stat; do
    read -r line <"$stat" || continue
    pid=\${line%% *}
    set -- \${line##*) } # state, parent, group
    [ "$3" = "$$" ] && [ "$pid" != "$$" ] && [ "$1" != Z ] && left="$left $pid"
  done
  [ -n "$left" ]
}
trap '' TERM
kill -TERM 0
seconds=0
find_left && sleep 0.1
while find_left && [ "$seconds" -lt "$0" ]; do
  sleep 1
  seconds=$((seconds + 1))
done
[ -z "$left" ] || kill -KILL $left
exit "$code"`;

/** A shell's exit code above this is the number of the ending signal plus this. */
const signalCodes = 128;
const signalNames: Readonly<Record<number, string>> = { 6: "SIGABRT", 9: "SIGKILL", 11: "SIGSEGV", 15: "SIGTERM" };

export function startGuarded({ command, environment, folder, graceMs }: ChildCommand): GuardedChild {
  const child = spawn("/bin/sh", ["-c", guard, String(Math.ceil(graceMs / 1000)), ...command], {
    env: environment,
    ...(folder === null ? {} : { cwd: folder }),
    stdio: ["pipe", "pipe", "pipe"],
    detached: true,
  });
  const { promise: ended, resolve } = Promise.withResolvers<string>();
  child.on("error", ({ message }) => resolve(`it cannot be started: ${message}`));
  child.on("exit", (code, signal) => resolve(code === null ? `signal ${signal}` : endOf(code)));
  child.stdin.on("error", () => {}); // it ended before we closed the pipe; `ended` reports that
  return { pid: child.pid, output: [child.stdout, child.stderr], ended, end: () => child.stdin.end() };
}

function endOf(code: number): string {
  if (code <= signalCodes) return `exit code ${code}`;
  const signal = code - signalCodes;
  return `signal ${signalNames[signal] ?? signal}`;
}
