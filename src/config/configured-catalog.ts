// Loads the catalog that a configuration names: a file of its own, or the one that comes with the program.
import { type Catalog, embeddedCatalog, loadCatalog } from "../core/catalog.ts";
import { type Plans, plansById } from "../core/plans.ts";
import type { Plan } from "../core/types.ts";
import { nothingTold, type ToldOfModel } from "./models.ts";
import { checkModelIds, type Config, ownModelsOf } from "./config.ts";

/** Throws CatalogError. */
export const catalogOf = ({
  catalogFile,
  outputTokensDefault,
}: Pick<Config, "catalogFile" | "outputTokensDefault">): Promise<Catalog> =>
  catalogFile === null
    ? Promise.resolve(embeddedCatalog(outputTokensDefault))
    : loadCatalog(catalogFile, outputTokensDefault);

/** A shop's own plans in place of the catalog's, if it names any. */
export const offeredPlans = (own: readonly Plan[], { plans }: Pick<Catalog, "plans">): Plans =>
  own.length === 0 ? plans : plansById(own);

/** A shop's own models and plans in place of the catalog's, if it names any. Throws ConfigError for names that are wrong. */
export function configuredCatalog(config: Config, catalog: Catalog, reported?: ToldOfModel): Catalog {
  const models = config.models.length === 0 ? catalog.models : ownModelsOf(config, reported);
  const configured = { ...catalog, models, plans: offeredPlans(config.plans, catalog) };
  checkModelIds(config, configured);
  return configured;
}

/** A row promises nothing that it does not say. */
const nothingPromised: ToldOfModel = { ...nothingTold, contextTokens: 1, readsImages: false };

/** What the configuration promises, to be held against what nodes have. Throws CatalogError and ConfigError. */
export const checkedCatalogOf = async (config: Config): Promise<Catalog> =>
  configuredCatalog(config, await catalogOf(config), nothingPromised);
