// Which model serves a request for one that no node can serve now: the first of its row's `fallback` that some node can.
import { type Catalog, distinctModels, type KnownModels } from "./catalog.ts";
import type { Model } from "./types.ts";

const fallingBack = new WeakMap<Catalog["models"], readonly Model[]>();

/** The models, with those that are not served replaced by what stands in for them; the same object where none is. */
export function servedModels(catalog: KnownModels, isServed: (modelId: string) => boolean): KnownModels {
  const { models } = catalog;
  let rows = fallingBack.get(models);
  if (rows === undefined) {
    rows = distinctModels(catalog).filter(({ fallback = [] }) => fallback.length > 0);
    fallingBack.set(models, rows);
  }
  let replaced: Map<string, Model> | null = null;
  for (const { id, aliases, kind, fallback = [] } of rows) {
    if (isServed(id)) continue;
    const other = fallback
      .map((name) => models.get(name))
      .find((model) => model !== undefined && model.kind === kind && isServed(model.id));
    if (other === undefined) continue;
    const names = [id, ...aliases];
    const standIn: Model = { ...other, aliases: names, standsFor: id };
    replaced ??= new Map(models);
    for (const name of names) if (models.get(name)?.id === id) replaced.set(name, standIn);
  }
  return replaced === null ? catalog : { models: replaced };
}
