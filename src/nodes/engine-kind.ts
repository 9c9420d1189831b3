// The inference engines that the gateway tells apart.
export type EngineKind =
  | "vllm"
  | "sglang"
  | "tensorrt-llm"
  | "llama.cpp"
  | "ollama"
  | "lm-studio"
  | "tgi"
  | "transformers"
  | "llama-cpp-python"
  | "sglang-router"
  | "demo"
  | "unknown";
