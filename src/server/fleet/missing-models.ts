// Models that no node has, of nodes that were just asked: for `check`, `doctor` and changes of the configuration.
import { distinctModels, type KnownModels } from "../../core/catalog.ts";
import type { Inspection } from "../../nodes/inspect.ts";
import { type ServedReport, whyMissing } from "./model-report.ts";

/** Requestable models that no node has, of nodes that answered; others are reported already. */
export function missingAmong(
  nodes: readonly Inspection[],
  { models }: KnownModels,
): readonly Pick<ServedReport, "id" | "missing">[] {
  const served = new Set(nodes.flatMap(({ serves }) => serves));
  return distinctModels({ models }).flatMap((model) => {
    const { id, tier } = model;
    const lacking = nodes.filter(({ lacks }) => lacks.includes(id)).map(({ name }) => name);
    // Some of the catalog's models may have no node.
    if (served.has(id) || (tier !== "own" && lacking.length === 0)) return [];
    return [{ id, missing: whyMissing(model, [], lacking) }];
  });
}
