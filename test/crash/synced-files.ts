// What a power cut leaves: files as they were at their last flush. Reads strace's record of a process's writes and flushes
// and does them again, dropping what was never flushed. (A kill alone leaves everything to the system, which still writes
// it.) The shared memory file beside a WAL is not written by calls; SQLite makes it anew.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";

/** The options of strace that make the record. */
export const recordTo = (file: string): readonly string[] => [
  ...["-y", "-xx", "-s", "1000000", "-o", file],
  ...["-e", "trace=pwrite64,write,ftruncate,fdatasync,fsync,unlink,unlinkat"],
];

type Change = Readonly<{ at: number; bytes: Buffer }> | Readonly<{ truncateTo: number }>;

/** A file as its process sees it and as the disk has it. */
class Traced {
  #durable: Buffer;
  readonly #pending: Change[] = [];

  constructor(initial: Buffer) {
    this.#durable = initial;
  }

  get unflushed(): number {
    return this.#pending.length;
  }

  get durable(): Buffer {
    return this.#durable;
  }

  change(change: Change): void {
    this.#pending.push(change);
  }

  flush(): void {
    for (const change of this.#pending.splice(0)) this.#durable = applied(this.#durable, change);
  }
}

function applied(file: Buffer, change: Change): Buffer {
  if ("truncateTo" in change) {
    const cut = Buffer.alloc(change.truncateTo);
    file.copy(cut);
    return cut;
  }
  const { at, bytes } = change;
  const grown =
    file.length >= at + bytes.length ? file : Buffer.concat([file, Buffer.alloc(at + bytes.length - file.length)]);
  bytes.copy(grown, at);
  return grown;
}

/** The text of a call is in pieces where another thread's came between; strace numbers threads first. */
function callsOf(record: string): string[] {
  const unfinished = new Map<string, string>();
  const calls: string[] = [];
  for (const line of record.split("\n")) {
    const [, thread = "", text = ""] = /^(\d+) +(.*)$/.exec(line) ?? [];
    if (text.endsWith("<unfinished ...>")) {
      unfinished.set(thread, text.slice(0, -"<unfinished ...>".length));
      continue;
    }
    const resumed = /^<\.\.\. \w+ resumed>(.*)$/.exec(text)?.[1];
    calls.push(resumed === undefined ? text : (unfinished.get(thread) ?? "") + resumed);
  }
  return calls;
}

const bytesOf = (literal: string): Buffer => Buffer.from(literal.replaceAll("\\x", ""), "hex");
const decoded = (path: string): string => (path.startsWith("\\x") ? bytesOf(path).toString() : path);

function found(pattern: RegExp, call: string): RegExpExecArray {
  const match = pattern.exec(call);
  if (match === null) throw new Error(`not understood: ${call.slice(0, 200)}`);
  return match;
}

export type PowerCut = Readonly<{ droppedChanges: number }>;

/**
 * Writes into `to` what the disk has of the named files of `from` (as they were before the recorded process began) after
 * the recorded process lost its power at its end.
 */
export function afterPowerCut(
  record: string,
  folder: string,
  names: readonly string[],
  from: string,
  to: string,
): PowerCut {
  const files = new Map(
    names.map((name) => {
      const before = join(from, name);
      return [name, new Traced(existsSync(before) ? readFileSync(before) : Buffer.alloc(0))] as const;
    }),
  );
  for (const call of callsOf(readFileSync(record, "latin1"))) {
    const [, name = "", path = ""] = /^(\w+)\(\d+<([^>]*)>/.exec(call) ?? [];
    const at = decoded(path);
    const file = at.startsWith(folder) ? files.get(basename(at)) : undefined;
    if (file === undefined || / = -1 /.test(call)) continue;
    if (name === "pwrite64") {
      const [, literal, offset] = found(/, "([^"]*)", \d+, (\d+)\s*\)/, call);
      file.change({ at: Number(offset), bytes: bytesOf(literal!) });
    } else if (name === "ftruncate") file.change({ truncateTo: Number(found(/, (\d+)\s*\)/, call)[1]) });
    else if (name === "fdatasync" || name === "fsync") file.flush();
    else throw new Error(`${name} is not how SQLite writes: ${call.slice(0, 200)}`);
  }
  let droppedChanges = 0;
  for (const [name, file] of files) {
    droppedChanges += file.unflushed;
    if (file.durable.length > 0) writeFileSync(join(to, name), file.durable, { mode: 0o600 });
  }
  return { droppedChanges };
}
