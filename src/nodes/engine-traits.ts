// What each engine takes beyond the common subset of a chat-completions request.
import type { KnownSampling } from "./engine-fields.ts";
import type { EngineKind } from "./engine-kind.ts";
import type { PrefixCacheTrait } from "./prefix-cache.ts";
import type { Effort } from "../core/types.ts";

export type EngineTraits = Readonly<{
  /** stream_options.continuous_usage_stats: usage with every event, for answers that are cut. */
  runningUsage: boolean;
  prefixCache: PrefixCacheTrait;
  /**
   * How to force one tool. `native`: the object form. `required`: only that tool, and tool_choice "required".
   * `required-unthinking`: the same with thinking off, because llama-server otherwise writes text until the budget
   * ends. `schema`: the engine ignores tool_choice, so the prompt describes the call and a schema holds the answer to
   * its form; the text becomes the call (see named-call.ts). Models that are held to a tool's arguments alone ramble.
   */
  forcedTool: "native" | "required" | "required-unthinking" | "schema";
  /** It can hold answers to a schema; otherwise the prompt describes the format. */
  formats: boolean;
  jsonObject: boolean;
  /** Whether it ends an answer before a stop sequence. */
  stops: boolean;
  /** It reports which stop sequence ended an answer. */
  saysStop: boolean;
  /** Which fields of a plain completion it supports beside the prompt. Several engines silently ignore them. */
  plain: Readonly<{ suffix: boolean; echo: boolean; echoAlone?: true }>;
  sampling: KnownSampling;
  parallelToolCalls: boolean;
  /** Fields that make it continue a final assistant message; absent: it does so by default, or cannot. */
  prefill?: Readonly<Record<string, unknown>>;
  depth: (effort: Effort, nodeModel: string) => Record<string, unknown>;
}>;

const fullSampling = { top_k: "top_k", min_p: "min_p", repetition_penalty: "repetition_penalty" } as const;

/** Both switches: model families read one or the other, and these engines ignore what a template does not name. */
export const thinking = (on: boolean, settings: unknown = {}) => ({
  chat_template_kwargs: { ...(settings as object), enable_thinking: on, thinking: on },
});
const effortWords = { minimal: "low", low: "low", medium: "medium", high: "high", max: "high" } as const;
const depthByTemplate = (effort: Effort): Record<string, unknown> =>
  effort === "off" ? thinking(false) : { ...thinking(true), reasoning_effort: effortWords[effort] };
const noDepth = (): Record<string, unknown> => ({});

const plain: EngineTraits = {
  runningUsage: false,
  prefixCache: "shared",
  forcedTool: "required",
  formats: true,
  jsonObject: true,
  stops: true,
  saysStop: false,
  plain: { suffix: false, echo: false },
  sampling: {},
  parallelToolCalls: true,
  depth: noDepth,
};

export const engineTraits: Readonly<Record<EngineKind, EngineTraits>> = {
  vllm: {
    ...plain,
    runningUsage: true,
    prefixCache: "salt",
    forcedTool: "native",
    saysStop: true,
    prefill: { continue_final_message: true, add_generation_prompt: false },
    plain: { suffix: true, echo: true, echoAlone: true }, // it says so where the model cannot
    sampling: fullSampling,
    depth: depthByTemplate,
  },
  sglang: {
    ...plain,
    runningUsage: true,
    prefixCache: "salt",
    forcedTool: "native",
    saysStop: true,
    prefill: { continue_final_message: true },
    plain: { suffix: false, echo: true, echoAlone: true }, // a suffix works only where it was started with a completion template
    sampling: fullSampling,
    depth: depthByTemplate,
  },
  // Refuses unknown fields. Some versions also refuse unused template settings.
  "tensorrt-llm": {
    ...plain,
    prefixCache: "salt-if-asked",
    runningUsage: true,
    forcedTool: "native",
    sampling: fullSampling,
    parallelToolCalls: false,
    depth: (effort) => (effort === "off" ? { chat_template_kwargs: { enable_thinking: false } } : {}),
  },
  "llama.cpp": {
    ...plain,
    prefixCache: "unused-if-asked",
    forcedTool: "required-unthinking",
    sampling: { top_k: "top_k", min_p: "min_p", repetition_penalty: "repeat_penalty" },
    depth: depthByTemplate,
  },
  // Answers 400 to an effort for a model that cannot think. Thinks by default where it can. Only gpt-oss has levels.
  ollama: {
    ...plain,
    forcedTool: "schema",
    plain: { suffix: true, echo: false },
    depth: (effort, nodeModel) => {
      if (effort === "off") return { reasoning_effort: "none" };
      return nodeModel.includes("gpt-oss") ? { reasoning_effort: effortWords[effort] } : {};
    },
  },
  "lm-studio": { ...plain, jsonObject: false, sampling: { top_k: "top_k", repetition_penalty: "repeat_penalty" } },
  tgi: { ...plain, forcedTool: "native" },
  // Ignores efforts, formats and forced tools. Writes a stop sequence before it ends there, even inside thoughts.
  transformers: {
    ...plain,
    formats: false,
    stops: false,
    parallelToolCalls: false,
    depth: (effort) =>
      effort === "off"
        ? thinking(false)
        : { chat_template_kwargs: { ...thinking(true).chat_template_kwargs, reasoning_effort: effortWords[effort] } },
  },
  // Forces no tools, reads no calls, and refuses formats other than its own.
  "llama-cpp-python": {
    ...plain,
    forcedTool: "schema",
    plain: { suffix: true, echo: true },
    sampling: { top_k: "top_k", min_p: "min_p", repetition_penalty: "repeat_penalty" },
    parallelToolCalls: false,
  },
  // In front of SGLang or vLLM: what both take, as far as it passes it on. 0.3.2 drops the salt of prompt caches.
  "sglang-router": {
    ...plain,
    plain: { suffix: true, echo: true, echoAlone: true },
    sampling: fullSampling,
    depth: depthByTemplate,
  },
  demo: { ...plain, plain: { suffix: true, echo: false } },
  // OpenAI's own form, which a router may pass on.
  unknown: { ...plain, prefixCache: "salt-if-asked", plain: { suffix: true, echo: true, echoAlone: true } },
};

export const keepsApart = (engine: EngineKind): boolean => engineTraits[engine].prefixCache !== "shared";
export const streamFields = ({ runningUsage }: EngineTraits): Record<string, unknown> => ({
  stream: true,
  stream_options: runningUsage ? { include_usage: true, continuous_usage_stats: true } : { include_usage: true },
});
