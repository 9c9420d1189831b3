// How well does a running gateway or node handle many requests at once? A load test for self-hosters.
//
//   bun bench load --url http://127.0.0.1:8400 --key sk-tg-... [--dialect messages] [--streams 50] [--duration 60]
import { dialectNamed } from "./dialect.ts";
import { readFlags } from "./flags.ts";
import { LoadMeasurement, type LoadSettings, runLoad } from "./load-client.ts";
import { progressLine, reportOf, svgOf, textOf } from "./load-report.ts";

const help = `bun bench load [flags]     (or: npm run bench -- load [flags])

Keeps a number of requests open on a running gateway or node for a while and reports how they fared.
Ctrl-C ends it early and reports what was measured.

  --url URL          where it is, with or without /v1 (http://127.0.0.1:8400)
  --key KEY,KEY      API keys, used in turn; else those of the variable TOLLGATE_KEY, which nobody sees in a list of
                     processes. Tollgate takes 120 requests a minute of one account.
  --model MODEL      (core-3)
  --dialect DIALECT  chat, messages or responses (chat)
  --streams N        requests open at once (10)
  --duration S       seconds (30); replies that are not complete by then are cut off
  --non-streaming    ask for whole replies
  --max-tokens N     output budget of a request (256)
  --prompt TEXT
  --json FILE        writes the report as JSON
  --svg FILE         writes a chart
`;

const defaults = {
  url: "http://127.0.0.1:8400",
  key: "",
  model: "core-3",
  dialect: "chat",
  streams: 10,
  duration: 30,
  nonStreaming: false,
  maxTokens: 256,
  prompt: "Count from 1 to 200, one number a line.",
  json: "",
  svg: "",
  help: false,
};

const progressIntervalMs = 500;

/** Runs the load test. The exit status: 0 when a reply was complete, 1 when none was, 2 for flags that it cannot take. */
export async function load(argv: readonly string[]): Promise<number> {
  let flags: typeof defaults;
  let settings: LoadSettings;
  try {
    flags = readFlags(defaults, {}, argv);
    settings = settingsOf(flags);
  } catch (thrown) {
    console.error(`${thrown instanceof Error ? thrown.message : String(thrown)}\n\n${help}`);
    return 2;
  }
  if (flags.help) {
    console.log(help);
    return 0;
  }
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(), flags.duration * 1_000);
  // The second signal finds no listener anymore and ends the process at once.
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort());
  const cpuBefore = process.cpuUsage();
  const seen = new LoadMeasurement();
  const endProgress = showProgress(() => progressLine(settings, seen, flags.duration));
  let hopeless: string | null = null;
  seen.onFailure = (error) => {
    if (seen.complete > 0 || !isHopeless(error)) return;
    hopeless ??= error;
    stop.abort();
  };
  await runLoad(settings, seen, stop.signal);
  clearTimeout(timer);
  endProgress();
  if (hopeless !== null) {
    console.error(`Stopped, because no request can succeed: ${hopeless}\n${adviceOn(hopeless, settings)}`);
    return 1;
  }
  const { user, system } = process.cpuUsage(cpuBefore);
  const report = reportOf(settings, seen, (user + system) / 1e6);
  console.log(textOf(report));
  if (flags.json !== "") await Bun.write(flags.json, `${JSON.stringify(report, null, 2)}\n`);
  if (flags.svg !== "") await Bun.write(flags.svg, svgOf(report));
  return seen.complete > 0 ? 0 : 1;
}

function settingsOf(flags: typeof defaults): LoadSettings {
  return {
    url: addressOf(flags.url),
    keys: (flags.key || process.env["TOLLGATE_KEY"] || "").split(",").flatMap((key) => key.trim() || []),
    model: flags.model,
    dialect: dialectNamed(flags.dialect),
    streams: flags.streams,
    prompt: flags.prompt,
    outputTokensMax: flags.maxTokens,
    stream: !flags.nonStreaming,
  };
}

/** Before any reply was complete: the same would happen to every other request. 408 and 429 may pass. */
const isHopeless = (error: string): boolean => /^(?:no connection|4(?!08|29)\d\d )/.test(error);

function adviceOn(error: string, { url, keys, model }: LoadSettings): string {
  if (error.startsWith("401") && keys.length === 0) {
    return (
      "Give an API key with --key, or in the variable TOLLGATE_KEY. The first start of the server printed one, and\n" +
      "tollgate accounts create EMAIL --credit 100000000 makes an account with one."
    );
  }
  if (error.startsWith("401")) return "The key is void or mistyped: tollgate keys rotate EMAIL prints another one.";
  if (error.startsWith("4")) return `Is --model ${model} one of those that GET ${url.origin}/v1/models lists?`;
  return `Does the server run, and is ${url.origin} its address? --url names another.`;
}

/** Rewrites one line of the terminal; writes nothing if there is none. Returns what ends it. */
function showProgress(line: () => string): () => void {
  const { stderr } = process;
  if (!stderr.isTTY) return () => {};
  const clear = "\r\u001b[K";
  const timer = setInterval(
    () => stderr.write(clear + line().slice(0, (stderr.columns || 80) - 1)),
    progressIntervalMs,
  );
  return () => {
    clearInterval(timer);
    stderr.write(clear);
  };
}

function addressOf(text: string): URL {
  const url = URL.parse(text);
  if (url !== null && (url.protocol === "http:" || url.protocol === "https:")) return url;
  throw new Error(`--url needs an address such as http://127.0.0.1:8400, not "${text}"`);
}

if (import.meta.main) process.exitCode = await load(Bun.argv.slice(2));
