// CPU time of the threads of a process, by their names, from /proc (Linux).
import { readdirSync, readFileSync } from "node:fs";

/** Microseconds. */
export type ThreadTime = Readonly<{ thread: string; name: string; microseconds: number }>;

/** What each thread has used up to now; the main thread is called "main". */
export function threadTimes(pid: number): ThreadTime[] {
  return readdirSync(`/proc/${pid}/task`).map((thread) => {
    const folder = `/proc/${pid}/task/${thread}`;
    const nanoseconds = Number(readFileSync(`${folder}/schedstat`, "latin1").split(" ")[0]);
    const name = thread === String(pid) ? "main" : readFileSync(`${folder}/comm`, "latin1").trim();
    return { thread, name, microseconds: nanoseconds / 1_000 };
  });
}

/** What each used since `before`, the most first. */
export function since(before: readonly ThreadTime[], after: readonly ThreadTime[]): ThreadTime[] {
  const had = new Map(before.map(({ thread, microseconds }) => [thread, microseconds]));
  return after
    .map((time) => ({ ...time, microseconds: time.microseconds - (had.get(time.thread) ?? 0) }))
    .sort((one, other) => other.microseconds - one.microseconds);
}
