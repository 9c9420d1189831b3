// The client of the load test: keeps N requests open, each followed by the next, until it is stopped.
import { Connection } from "./connection.ts";
import { clientDialects, type DialectName } from "./dialect.ts";
import { Histogram } from "./histogram.ts";
import { errorMessage, ReplyMeter } from "./reply-meter.ts";

export type LoadSettings = Readonly<{
  /** Where the gateway or node is: `http://host:port`, with or without the `/v1` of a base address. */
  url: URL;
  /** Used in turn: a gateway may limit the requests of each. Empty sends none. */
  keys: readonly string[];
  model: string;
  dialect: DialectName;
  /** Requests open at once. */
  streams: number;
  prompt: string;
  outputTokensMax: number;
  stream: boolean;
}>;

/** The first requests are spread over this time. */
const rampMs = 1_000;
/** After a failure, so that a gateway that refuses is not asked in a tight loop. */
const failurePauseMs = 1_000;

/** What was seen until now; grows by one number for each second. */
export class LoadMeasurement {
  started = 0;
  complete = 0;
  /** Were open when the measurement ended. */
  cutOff = 0;
  /** Events with a piece of the answer, in whole replies and all others. */
  textEvents = 0;
  /** Of complete replies that report their tokens: those, and the events that they came in. */
  reportedTokens = 0;
  reportedEvents = 0;
  readonly firstTokenMs = new Histogram();
  /** Between two arrivals of text in a stream; pieces that arrive together are one arrival. */
  readonly gapMs = new Histogram();
  readonly wholeMs = new Histogram();
  /** "429 Too many requests" -> how often. */
  readonly errors = new Map<string, number>();
  /** Events with text, or whole replies where nothing is streamed, in each second. */
  readonly eachSecond: number[] = [];
  readonly startedMs = performance.now();

  get failed(): number {
    return this.errors.values().reduce((sum, count) => sum + count, 0);
  }

  fail(error: string): void {
    this.errors.set(error, (this.errors.get(error) ?? 0) + 1);
    this.onFailure(error);
  }

  /** Hears of each failure. */
  onFailure: (error: string) => void = () => {};

  /** Counts so many in the current second. */
  tick(count: number): void {
    const second = Math.floor((performance.now() - this.startedMs) / 1_000);
    while (this.eachSecond.length <= second) this.eachSecond.push(0);
    this.eachSecond[second]! += count;
  }
}

/** Runs the load until `stop` is aborted; requests that are open then are closed and counted as cut off. */
export async function runLoad(settings: LoadSettings, seen: LoadMeasurement, stop: AbortSignal): Promise<void> {
  const requests = requestsOf(settings);
  /** Whatever a stream waits for ends early through this. */
  const stops = new Set<() => void>();
  stop.addEventListener("abort", () => stops.forEach((end) => end()), { once: true });

  const pause = (durationMs: number) =>
    new Promise<void>((resolve) => {
      if (stop.aborted) return resolve();
      const end = () => {
        clearTimeout(timer);
        stops.delete(end);
        resolve();
      };
      const timer = setTimeout(end, durationMs);
      stops.add(end);
    });

  const ask = (connection: Connection, request: Buffer) =>
    new Promise<string | null>((resolve) => {
      const cutOff = () => {
        seen.cutOff++;
        resolve(null);
      };
      if (stop.aborted) return cutOff();
      stops.add(cutOff);
      exchange(connection, request, settings, seen, (failure) => {
        stops.delete(cutOff);
        resolve(failure);
      });
    });

  const runStream = async (index: number) => {
    await pause((rampMs * index) / settings.streams);
    let connection: Connection | null = null;
    while (!stop.aborted) {
      const request = requests[seen.started++ % requests.length]!;
      let failure: string | null;
      try {
        if (!connection?.open) connection = await openConnection(settings.url);
        failure = await ask(connection, request);
      } catch (thrown) {
        failure = `no connection: ${thrown instanceof Error ? thrown.message : String(thrown)}`;
      }
      if (failure === null) continue;
      seen.fail(failure);
      await pause(failurePauseMs);
    }
    connection?.close();
  };
  await Promise.all(Array.from({ length: settings.streams }, (_none, index) => runStream(index)));
}

/** One request and its reply; `done` hears what failed, or null. */
function exchange(
  connection: Connection,
  request: Buffer,
  settings: LoadSettings,
  seen: LoadMeasurement,
  done: (failure: string | null) => void,
): void {
  const meter = new ReplyMeter(settings.dialect);
  const sentMs = performance.now();
  let lastTextMs = 0;
  let body = "";
  const arrived = () => {
    const nowMs = performance.now();
    if (lastTextMs === 0) seen.firstTokenMs.add(nowMs - sentMs);
    else seen.gapMs.add(nowMs - lastTextMs);
    lastTextMs = nowMs;
  };
  connection.ask(request, {
    body(text, status) {
      if (!settings.stream || status !== 200) {
        body += text;
        return;
      }
      const before = meter.textEvents;
      meter.feed(text);
      const events = meter.textEvents - before;
      if (events === 0) return;
      arrived();
      seen.textEvents += events;
      seen.tick(events);
    },
    end(status) {
      if (status !== 200) return done(`${status} ${errorMessage(body)}`);
      if (!settings.stream) meter.body(body);
      const failure = meter.failure(status);
      if (failure !== null) return done(failure);
      seen.complete++;
      seen.wholeMs.add(performance.now() - sentMs);
      if (!settings.stream) seen.tick(1);
      if (meter.reportedTokens !== null) {
        seen.reportedTokens += meter.reportedTokens;
        seen.reportedEvents += meter.textEvents;
      }
      done(null);
    },
    failed: (reason) => done(lastTextMs === 0 ? reason : `in the middle of a stream: ${reason}`),
  });
}

function openConnection(url: URL): Promise<Connection> {
  const tls = url.protocol === "https:";
  // An IPv6 address stands in brackets in a URL, and without them everywhere else.
  const hostname = url.hostname.replace(/^\[(.*)\]$/, "$1");
  return Connection.open(Number(url.port) || (tls ? 443 : 80), hostname, tls);
}

/** One request for each key. */
function requestsOf(settings: LoadSettings): Buffer[] {
  const { url, model, prompt, outputTokensMax, stream } = settings;
  const dialect = clientDialects[settings.dialect];
  const body = JSON.stringify({
    ...dialect.body({ model, prompt, outputTokensMax, stream }),
    // Engines report the tokens of a chat stream only when they are asked to.
    ...(settings.dialect === "chat" && stream ? { stream_options: { include_usage: true } } : {}),
  });
  const path = url.pathname.replace(/\/+$/, "").replace(/\/v1$/, "") + dialect.path;
  const keys = settings.keys.length === 0 ? [null] : settings.keys;
  return keys.map((key) =>
    Buffer.from(
      [
        `POST ${path} HTTP/1.1`,
        `host: ${url.host}`,
        // The messages dialect has a header of its own; servers that know only one of the two find it.
        ...(key === null ? [] : [`authorization: Bearer ${key}`]),
        ...(key === null || settings.dialect !== "messages" ? [] : [`x-api-key: ${key}`]),
        ...(settings.dialect === "messages" ? ["anthropic-version: 2023-06-01"] : []),
        "content-type: application/json",
        `content-length: ${Buffer.byteLength(body)}`,
        "",
        body,
      ].join("\r\n"),
    ),
  );
}
