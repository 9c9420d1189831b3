// tollgate models: the models that nodes offer and the server serves, with prices, and models that no node has.
import { missingLines, type ModelReport, type PriceInDollars, shownName } from "../server/fleet/model-report.ts";
import type { Invocation } from "./command.ts";
import { seenModels } from "./models-report.ts";
import { formatTable } from "../office/table.ts";

export default async function listModels({ flags, environment }: Invocation): Promise<number> {
  const { report, unseen } = await seenModels(flags, environment);
  if (flags["json"] === true) console.log(JSON.stringify(report));
  else {
    console.log(servedTable(report));
    console.log(`\n${offeredText(report)}`);
    for (const line of missingLines(report.served)) console.log(`${line}.`);
    if (unseen.length > 0) console.log(`Not asked, or down: ${unseen.join(", ")}.`);
    if (
      report.offered.some(({ served_as: ids }) => ids.length === 0) ||
      report.served.some(({ by }) => by === "nodes")
    ) {
      console.log("tollgate models suggest prints [[models]] for what the nodes list.");
    }
  }
  return 0;
}

function servedTable({ served }: ModelReport): string {
  const rows = served.map(({ id, aliases, price, nodes, missing, node_model, context, plans, by, hidden }) => [
    shownName(id),
    aliases.map(shownName).join(", "),
    priceInWords(price),
    missing === null ? nodes.join(", ") : "none",
    node_model === null ? null : shownName(node_model),
    context,
    plans === null ? "all" : plans.join(", "),
    by + (hidden ? ", hidden" : ""),
  ]);
  const price = "USD/1M input / cached / output";
  return formatTable(["served", "also as", price, "nodes", "name there", "context", "plans", "by"], rows);
}

const priceInWords = (price: PriceInDollars | null): string =>
  price === null
    ? "free: no price set"
    : price.per !== undefined
      ? `${price.input} per ${price.per}`
      : `${price.input} / ${price.cached} / ${price.output}`;

function offeredText({ offered }: ModelReport): string {
  if (offered.length === 0) return "No node lists a model.";
  const rows = offered.map(({ node, name, kind, context, can, cannot, served_as: ids }) => [
    node,
    shownName(name),
    kind,
    context,
    [...can.filter((each) => each !== "chat"), ...cannot.map((each) => `no ${each}`)].join(", "),
    ids.length === 0 ? "not served" : ids.length > 3 ? `${ids[0]} and ${ids.length - 1} more` : ids.join(", "),
  ]);
  return formatTable(["node", "offers", "kind", "context", "can", "served as"], rows);
}
