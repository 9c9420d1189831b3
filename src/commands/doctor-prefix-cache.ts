// The part of `tollgate doctor` about prefix caches: nodes that cannot separate accounts, and what separation costs.
import type { SharePrefixCache } from "../config/config.ts";
import type { EngineKind } from "../nodes/engine-kind.ts";
import { engineTraits, keepsApart } from "../nodes/engine-traits.ts";
import { keptPrompts } from "../nodes/prefix-cache.ts";
import type { RecentInput } from "../store/recent-input.ts";
import { type Finding, ok, warning } from "./finding.ts";

export type CachingNode = Readonly<{ name: string; engine: EngineKind; sharing: SharePrefixCache | undefined }>;

const modelsShownMax = 5;

export const sharedFindings = ({ name, engine, sharing }: CachingNode): readonly Finding[] =>
  sharing === undefined || sharing === true || keepsApart(engine)
    ? []
    : [
        warning(
          `node ${name}`,
          `share_prefix_cache = ${JSON.stringify(sharing)}, but its engine cannot keep accounts apart in its prefix cache`,
        ),
      ];

/** The cost of separation, from what engines reported recently where several accounts ask a model. */
export function saltFindings(nodes: readonly CachingNode[], recent: readonly RecentInput[]): readonly Finding[] {
  const common = recent.filter(({ accounts }) => accounts > 1);
  return (["by account", "by team", "by plan"] as const).flatMap((keeps) => {
    const salted = nodes.filter(
      ({ engine, sharing }) => keptPrompts(engineTraits[engine].prefixCache, sharing) === keeps,
    );
    if (salted.length === 0) return [];
    const who = keeps.slice("by ".length);
    const apart = `each ${who} has its own on ${salted.map(({ name }) => name).join(", ")}`;
    return [
      ok("prefix caches", `${apart}: a prompt that several ${who}s send is read once for each; ${costOf(common)}`),
    ];
  });
}

/** Measured on four simulated engines. */
const usualCost = "with 20 accounts asking about the same documents, 24 % of the input was cached instead of 94 %";

function costOf(common: readonly RecentInput[]): string {
  if (common.length === 0) return usualCost;
  const shown = common.slice(0, modelsShownMax).map(({ model, accounts, input, cached }) => {
    const part = cached === 0 ? "none" : `${Math.round((100 * cached) / input)} %`;
    return `${model}, with ${accounts} accounts, had ${part} of its latest ${input.toLocaleString("en-US")} input tokens cached`;
  });
  const hint = common.every(({ cached }) => cached === 0)
    ? " (vLLM reports it with --enable-prompt-tokens-details)"
    : "";
  return `${shown.join("; ")}${hint}`;
}
