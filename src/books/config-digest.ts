// What all gateways of one database should have alike, as a short text that each writes beside its name: models, plans, nodes
// and limits. Where they differ, `tollgate gateways` and `doctor` say so.
import type { Config } from "../config/config.ts";
import type { Catalog } from "../core/catalog.ts";

const digestLength = 16;

export function configDigest(config: Config, { models, plans, creditPacksTokens }: Catalog): string {
  const { outputTokensDefault, inputRequestsPerMinute, queueMaxWaitMs, storedResponses, usageKeepDays } = config;
  const { failedKeepDays, signUp, passwords, accountDeletion, endUserHeader, listNodeModels, sharePrefixCache } =
    config;
  const alike = {
    outputTokensDefault,
    inputRequestsPerMinute,
    queueMaxWaitMs,
    storedResponses,
    usageKeepDays,
    failedKeepDays,
    signUp,
    passwords,
    accountDeletion,
    endUserHeader,
    listNodeModels,
    sharePrefixCache,
    creditPacksTokens,
    plans,
    models: [...models],
    nodes: config.nodes.map(({ name, url, slots }) => ({ name, url, slots })),
  };
  return new Bun.CryptoHasher("sha256").update(JSON.stringify(alike)).digest("hex").slice(0, digestLength);
}
