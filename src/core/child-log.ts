// Writes a child process's output to our log, line by line: long lines are cut, and lines per minute are limited.
import type { Stream } from "node:stream";
import type { Log, LogFields } from "./log.ts";

/** A child's line is cut here. */
const childLogLineMaxLength = 1_000;
/** A child's further lines within a minute are dropped. */
const childLogLinesPerMinuteMax = 60;

const minuteMs = 60_000;

export type ChildLines = Readonly<{
  /** The events for a line, and for the count of dropped ones: "a node says", "a node said more". */
  says: string;
  saidMore: string;
  /** Identifies the child. */
  fields: LogFields;
}>;

/** Logs until the stream ends; excess lines are counted, and the count is logged once a minute. */
export function logLines(stream: Stream, { says, saidMore, fields }: ChildLines, log: Log): void {
  const decoder = new TextDecoder();
  let line = "";
  let logged = 0;
  let dropped = 0;
  const write = (): void => {
    const text = line.trim();
    line = "";
    if (text === "") return;
    if (logged === childLogLinesPerMinuteMax) dropped++;
    else {
      logged++;
      log("info", says, { ...fields, line: text });
    }
  };
  const minute = setInterval(() => {
    if (dropped > 0) log("info", saidMore, { ...fields, lines: dropped });
    logged = 0;
    dropped = 0;
  }, minuteMs);
  minute.unref();
  stream.on("data", (chunk: Buffer) => {
    const [rest = "", ...lines] = decoder.decode(chunk, { stream: true }).split("\n");
    line = (line + rest).slice(0, childLogLineMaxLength);
    for (const next of lines) {
      write();
      line = next.slice(0, childLogLineMaxLength);
    }
  });
  stream.on("close", () => {
    write();
    clearInterval(minute);
  });
}
