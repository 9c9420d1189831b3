// Which model serves a request for one that no node can serve now: the first of its row's `fallback` that some node can
// and that its sender may ask.
import { type Catalog, distinctModels, type KnownModels } from "./catalog.ts";
import type { Model } from "./types.ts";

const fallingBack = new WeakMap<Catalog["models"], readonly Model[]>();

type IsServed = (modelId: string) => boolean;

/** Those that now stand in for others, for senders who may ask them. */
export function standIns(catalog: KnownModels, isServed: IsServed): readonly Model[] {
  const { models } = catalog;
  let rows = fallingBack.get(models);
  if (rows === undefined) {
    rows = distinctModels(catalog).filter(({ fallback = [] }) => fallback.length > 0);
    fallingBack.set(models, rows);
  }
  const others = new Set<Model>();
  for (const { id, kind, fallback = [] } of rows) {
    if (isServed(id)) continue;
    for (const name of fallback) {
      const other = models.get(name);
      if (other !== undefined && other.kind === kind && isServed(other.id)) others.add(other);
    }
  }
  return [...others];
}

/** The models, with those that are not served replaced by the first of theirs that is among `others`. */
export function withStandIns(catalog: KnownModels, isServed: IsServed, others: readonly Model[]): KnownModels {
  const models = new Map(catalog.models);
  for (const { id, aliases, kind, fallback = [] } of fallingBack.get(catalog.models)!) {
    if (isServed(id)) continue;
    const other = fallback
      .map((name) => others.find((model) => model === catalog.models.get(name)))
      .find((model) => model?.kind === kind);
    if (other === undefined) continue;
    const names = [id, ...aliases];
    const standIn: Model = { ...other, aliases: names, standsFor: id };
    for (const name of names) if (models.get(name)?.id === id) models.set(name, standIn);
  }
  return { models };
}
