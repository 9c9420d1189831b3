// How busy an engine is, from its Prometheus metrics. Of several parts, requests add up and the fullest cache counts.
import { type Asking, rootOf } from "./engine-routes.ts";
import { get, isReply } from "./client/get.ts";

export type EngineLoad = Readonly<{
  running: number;
  waiting: number;
  /** The part of its cache that running requests need, from 0 to 1; null where the engine does not report it. */
  cacheUse: number | null;
  /** Tokens that its cache has room for; absent where the engine does not report it. */
  cacheTokens?: number;
}>;

/** `unreported`: it answered without these numbers. `silent`: it did not answer. */
export type LoadAnswer = EngineLoad | "unreported" | "silent";
export const isLoad = (answer: LoadAnswer): answer is EngineLoad => typeof answer === "object";

const meanings: ReadonlyMap<string, keyof EngineLoad> = new Map([
  ["vllm:cache_config_info", "cacheTokens"],
  ["vllm:num_requests_running", "running"],
  ["vllm:num_requests_waiting", "waiting"],
  ["vllm:kv_cache_usage_perc", "cacheUse"],
  ["vllm:gpu_cache_usage_perc", "cacheUse"], // before 0.10
  ["sglang:num_running_reqs", "running"],
  ["sglang:num_queue_reqs", "waiting"],
  ["sglang:token_usage", "cacheUse"],
  ["sglang:max_total_num_tokens", "cacheTokens"],
  ["llamacpp:requests_processing", "running"],
  ["llamacpp:requests_deferred", "waiting"],
  ["llamacpp:kv_cache_usage_ratio", "cacheUse"], // versions of 2025
]);
const firstLetters: ReadonlySet<string> = new Set([...meanings.keys()].map((name) => name[0]!));

export async function askForLoad({ client, basePath, apiKey, timeoutMs }: Asking): Promise<LoadAnswer> {
  const answer = await get(client, `${rootOf(basePath)}/metrics`, apiKey, timeoutMs);
  if (!isReply(answer)) return "silent";
  return (answer.status === 200 ? loadOf(answer.body) : null) ?? "unreported";
}

/** Reads Prometheus text in one pass; null where it lacks the running and waiting requests. */
export function loadOf(text: string): EngineLoad | null {
  const sums: Partial<Record<keyof EngineLoad, number>> = {};
  for (let start = 0, end = 0; start < text.length; start = end + 1) {
    end = text.indexOf("\n", start);
    if (end < 0) end = text.length;
    if (!firstLetters.has(text[start]!)) continue;
    const line = text.slice(start, end);
    const nameEnd = line.indexOf(" ");
    const labels = line.indexOf("{");
    const meaning = meanings.get(line.slice(0, labels < 0 ? nameEnd : Math.min(labels, nameEnd)));
    if (meaning === undefined || isPartOfSum(line)) continue;
    const value = meaning === "cacheTokens" ? cacheTokensOf(line) : valueOf(line);
    if (value === null) continue;
    sums[meaning] = meaning === "cacheUse" ? Math.max(sums.cacheUse ?? 0, value) : (sums[meaning] ?? 0) + value;
  }
  const { running, waiting, cacheUse = null, cacheTokens } = sums;
  if (running === undefined || waiting === undefined) return null;
  return { running, waiting, cacheUse, ...(cacheTokens !== undefined && { cacheTokens }) };
}

/** vLLM reports it in labels. */
function cacheTokensOf(line: string): number | null {
  if (!line.startsWith("vllm:")) return valueOf(line);
  const blocks = Number(/[{,]num_gpu_blocks="([0-9]+)"/.exec(line)?.[1] ?? Number.NaN);
  const size = Number(/[{,]block_size="([0-9]+)"/.exec(line)?.[1] ?? Number.NaN);
  return blocks * size > 0 ? blocks * size : null;
}

/** With priorities, SGLang reports the sum under the empty priority and each priority's part beside it. */
const isPartOfSum = (line: string): boolean => line.includes('priority="') && !line.includes('priority=""');

/** The value after the name and its labels, before an optional timestamp; null where that is no amount. */
function valueOf(line: string): number | null {
  const labelsEnd = line.lastIndexOf("}");
  const [value = ""] = line
    .slice(labelsEnd < 0 ? line.indexOf(" ") : labelsEnd + 1)
    .trimStart()
    .split(" ", 1);
  const amount = value === "" ? Number.NaN : Number(value);
  return Number.isFinite(amount) && amount >= 0 ? amount : null;
}

export function loadInWords({ running, waiting, cacheUse }: EngineLoad): string {
  const cache = cacheUse === null ? "" : `, cache ${Math.round(100 * Math.min(1, cacheUse))}% full`;
  return `runs ${running}, ${waiting} waiting${cache}`;
}
