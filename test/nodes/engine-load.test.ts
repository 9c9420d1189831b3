// What engines say of their load: as vLLM and llama.cpp wrote it while six requests were there and four ran, and as
// SGLang's own collector writes the same, and what
// is not to be taken for it.
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { loadInWords, loadOf } from "../../src/nodes/engine-load.ts";

const recorded = (name: string): string =>
  readFileSync(join(import.meta.dir, `../fixtures/engine-metrics/${name}.txt`), "utf8");

describe("as recorded", () => {
  test("vLLM 0.32", () => {
    const cacheUse = expect.closeTo(0.000_977, 5);
    expect(loadOf(recorded("vllm"))).toEqual({ running: 4, waiting: 2, cacheUse, cacheTokens: 524_288 });
  });
  test("SGLang 0.5.23 with priorities: the sum, not its parts beside it", () => {
    expect(loadOf(recorded("sglang-priorities"))).toEqual({ running: 4, waiting: 2, cacheUse: 0.03 });
  });
  test("SGLang's cache by its tokens, vLLM's not yet known", () => {
    const sglang =
      'sglang:num_running_reqs 1\nsglang:num_queue_reqs 0\nsglang:max_total_num_tokens{model="m"} 131072.0\n';
    expect(loadOf(sglang)).toMatchObject({ cacheTokens: 131_072 });
    const vllm =
      'vllm:num_requests_running 1\nvllm:num_requests_waiting 0\nvllm:cache_config_info{block_size="16",num_gpu_blocks="None"} 1.0\n';
    expect(loadOf(vllm)).toEqual({ running: 1, waiting: 0, cacheUse: null });
  });
  test("llama.cpp, which tells nothing of its cache", () => {
    expect(loadOf(recorded("llama-cpp"))).toEqual({ running: 4, waiting: 2, cacheUse: null });
  });
});

describe("the text form", () => {
  const vllm = (running: string, waiting: string) =>
    `vllm:num_requests_running{model_name="m"} ${running}\nvllm:num_requests_waiting{model_name="m"} ${waiting}`;
  test("parts of one engine are added up, and the fullest cache counts", () => {
    const parts = [0, 1].map(
      (part) => `vllm:num_requests_running{engine="${part}"} ${part + 3}
vllm:num_requests_waiting{engine="${part}"} ${part}
vllm:kv_cache_usage_perc{engine="${part}"} 0.${part + 4}`,
    );
    expect(loadOf(parts.join("\n"))).toEqual({ running: 7, waiting: 1, cacheUse: 0.5 });
  });
  test("labels with braces, a time behind the value, and line ends of Windows", () => {
    const text = 'vllm:num_requests_running{m="a } 9 {"} 2 1795374928\r\nvllm:num_requests_waiting 1e0 17\r\n';
    expect(loadOf(text)).toMatchObject({ running: 2, waiting: 1 });
  });
  test.each([
    ["nothing", ""],
    ["other programs", "# HELP x\nprocess_cpu_seconds_total 1\nvllm:num_requests_running_total 7"],
    ["half of it", "vllm:num_requests_running 3"],
    ["no numbers", vllm("NaN", "+Inf")],
    ["negative ones", vllm("-1", "2")],
    ["no value", "vllm:num_requests_running\nvllm:num_requests_waiting{}\nvllm:num_requests_waiting{"],
    ["an answer of a model", '{"object":"list"}'],
  ])("%s is no load", (_what, text) => {
    expect(loadOf(text)).toBeNull();
  });
  test("takes linear time", () => {
    const cost = (length: number): number => {
      const text = "vllm:num_requests_running{".repeat(length / 26);
      const many = "v\n".repeat(length / 2);
      const began = process.cpuUsage();
      for (let time = 0; time < 5; time++) for (const each of [text, many]) loadOf(each);
      const { user } = process.cpuUsage(began);
      return user;
    };
    cost(1 << 16);
    expect(cost(1 << 20)).toBeLessThan(64 * Math.max(cost(1 << 16), 1_000));
  });
  test("in words", () => {
    expect(loadInWords({ running: 4, waiting: 2, cacheUse: 0.41 })).toBe("runs 4, 2 waiting, cache 41% full");
    expect(loadInWords({ running: 0, waiting: 0, cacheUse: null })).toBe("runs 0, 0 waiting");
  });
});
