// Loads the catalog that a configuration names: a file of its own, or the one that comes with the program.
import { type Catalog, embeddedCatalog, loadCatalog } from "../core/catalog.ts";
import type { ToldOfModel } from "./models.ts";
import { checkModelIds, type Config, ownModelsOf } from "./config.ts";

/** Throws CatalogError. */
export const catalogOf = ({
  catalogFile,
  outputTokensDefault,
}: Pick<Config, "catalogFile" | "outputTokensDefault">): Promise<Catalog> =>
  catalogFile === null
    ? Promise.resolve(embeddedCatalog(outputTokensDefault))
    : loadCatalog(catalogFile, outputTokensDefault);

/** A shop's own models in place of the catalog's, if it names any. Throws ConfigError for names that are wrong. */
export function configuredCatalog(config: Config, catalog: Catalog, told?: ToldOfModel): Catalog {
  const configured = config.models.length === 0 ? catalog : { ...catalog, models: ownModelsOf(config, told) };
  checkModelIds(config, configured);
  return configured;
}

/** A row promises nothing that it does not say. */
const nothingPromised: ToldOfModel = { contextTokens: 1, readsImages: false };

/** What the configuration promises, to be held against what nodes have. Throws CatalogError and ConfigError. */
export const checkedCatalogOf = async (config: Config): Promise<Catalog> =>
  configuredCatalog(config, await catalogOf(config), nothingPromised);
