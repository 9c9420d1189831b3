// Structured log lines on standard error: one JSON object a line, or plain words on a terminal. Fields never hold a
// key, a prompt or an answer. If an error's text contains a key, it is masked here, and no text from outside can
// control the terminal.
import type { Ms } from "./types.ts";
import { visible } from "./visible.ts";

export const logLevels = ["debug", "info", "warn", "error"] as const;
export type LogLevel = (typeof logLevels)[number];
export type LogFormat = "json" | "text";
export type LogFields = Readonly<Record<string, string | number | boolean | null>>;
export type Log = (level: LogLevel, event: string, fields?: LogFields) => void;

export type LogOptions = Readonly<{
  /** Lines below it are not written. Read for each line, because it may change. */
  level: LogLevel;
  format: LogFormat;
  /** Wall-clock time of a line. */
  time: () => Ms;
  /** Texts to mask wherever they appear: keys and addresses of nodes. Read for each line. */
  secrets?: () => readonly string[];
  write?: (line: string) => void;
}>;

/** A person on a terminal reads text; a program that collects lines reads JSON. */
export const usualLogFormat = (): LogFormat => (process.stderr.isTTY ? "text" : "json");

export function openLog(options: LogOptions): Log {
  const { format, time, secrets = () => [], write = writeToStandardError } = options;
  return (level, event, fields = {}) => {
    if (logLevels.indexOf(level) < logLevels.indexOf(options.level)) return;
    const at = new Date(time()).toISOString();
    const line =
      format === "text" ? textLine(at, level, event, fields) : JSON.stringify({ at, level, event, ...fields });
    write(`${visible(blotted(line, secrets()))}\n`);
  };
}

/** A log that writes all but debug lines to standard error, for a command that reads no configuration. */
export const standardErrorLog = (time: () => Ms): Log => openLog({ level: "info", format: usualLogFormat(), time });

function writeToStandardError(line: string): void {
  process.stderr.write(line);
}

function textLine(at: string, level: LogLevel, event: string, fields: LogFields): string {
  let line = `${at} ${level.padEnd(5)} ${event}`;
  for (const [name, value] of Object.entries(fields)) line += ` ${name}=${textValue(value)}`;
  return line;
}

/** Quotes values with a space or a line break, so that every event is one line. */
const textValue = (value: LogFields[string]): string =>
  typeof value === "string" && /[\s"=]|^$/.test(value) ? JSON.stringify(value) : String(value);

/** Our keys, others' keys of the usual form, and bearer tokens. */
const keyShape = /\b(?:sk-[A-Za-z0-9_-]{16,}|[Bb]earer +[A-Za-z0-9._~+/-]{8,}=*)/g;

/** A shorter text would mask ordinary words, and is no secret. */
const secretMinLength = 6;

/** The line without secrets and anything that looks like a key. */
export function blotted(line: string, secrets: readonly string[]): string {
  let clean = line;
  for (const secret of secrets.filter(({ length }) => length >= secretMinLength)) {
    clean = clean.replaceAll(JSON.stringify(secret).slice(1, -1), "[secret]").replaceAll(secret, "[secret]");
  }
  return clean.replace(keyShape, "[secret]"); // last: it may match the beginning of a secret
}
