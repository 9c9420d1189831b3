// Loads the catalog that a configuration names: a file of its own, or the one that comes with the program.
import { type Catalog, embeddedCatalog, loadCatalog } from "../core/catalog.ts";
import type { Config } from "./config.ts";

/** Throws CatalogError. */
export const catalogOf = ({
  catalogFile,
  outputTokensDefault,
}: Pick<Config, "catalogFile" | "outputTokensDefault">): Promise<Catalog> =>
  catalogFile === null
    ? Promise.resolve(embeddedCatalog(outputTokensDefault))
    : loadCatalog(catalogFile, outputTokensDefault);
