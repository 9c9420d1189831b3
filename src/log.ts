// Structured log lines on standard error: one JSON object a line, or plain words on a terminal. Fields never hold a
// key, a prompt or an answer.

export type LogLevel = "info" | "warn" | "error";
export type LogFields = Readonly<Record<string, string | number | boolean | null>>;
export type Log = (level: LogLevel, event: string, fields?: LogFields) => void;

/** Writes to standard error; `time` gives the timestamp of a line. */
export function standardErrorLog(time: () => number, terminal = process.stderr.isTTY === true): Log {
  return (level, event, fields = {}) => {
    const at = new Date(time()).toISOString();
    const line = terminal
      ? `${at} ${level.padEnd(5)} ${event}${Object.entries(fields)
          .map(([name, value]) => ` ${name}=${value}`)
          .join("")}`
      : JSON.stringify({ at, level, event, ...fields });
    process.stderr.write(`${line}\n`);
  };
}
