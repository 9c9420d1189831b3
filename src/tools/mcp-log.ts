// The standard error of an MCP server that runs as our child, line by line in our log: cut, and not more than so many.
import type { Stream } from "node:stream";
import { mcpLogLineMaxLength, mcpLogLinesPerMinuteMax } from "../limits.ts";
import type { Log } from "../log.ts";

const minuteMs = 60_000;

/** Logs until the stream ends; what is too much is counted, and the count logged once a minute. */
export function logLines(stream: Stream, server: string, log: Log): void {
  const decoder = new TextDecoder();
  let line = "";
  let logged = 0;
  let dropped = 0;
  const write = (): void => {
    const text = line.trim();
    line = "";
    if (text === "") return;
    if (logged === mcpLogLinesPerMinuteMax) dropped++;
    else {
      logged++;
      log("info", "an MCP server says", { server, line: text });
    }
  };
  const minute = setInterval(() => {
    if (dropped > 0) log("info", "an MCP server said more", { server, lines: dropped });
    logged = 0;
    dropped = 0;
  }, minuteMs);
  minute.unref();
  stream.on("data", (chunk: Buffer) => {
    const [rest = "", ...lines] = decoder.decode(chunk, { stream: true }).split("\n");
    line = (line + rest).slice(0, mcpLogLineMaxLength);
    for (const next of lines) {
      write();
      line = next.slice(0, mcpLogLineMaxLength);
    }
  });
  stream.on("close", () => {
    write();
    clearInterval(minute);
  });
}
