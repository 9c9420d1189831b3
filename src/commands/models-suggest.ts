// tollgate models suggest: prints [[models]] for the models that nodes list, to paste into the configuration.
import { CommandError } from "../core/expected-error.ts";
import { planIds } from "../core/plan-ids.ts";
import { suggestedModels, suggestionText } from "../server/fleet/suggested-models.ts";
import type { Invocation } from "./command.ts";
import { seenModels } from "./models-report.ts";

export default async function suggestModels({ flags, environment }: Invocation): Promise<number> {
  const { report, config, unseen } = await seenModels(flags, environment);
  const suggestion = suggestedModels(report, config);
  if (suggestion.models.length === 0) throw new CommandError(whyNone(report.offered.length, unseen));
  if (flags["json"] === true) console.log(JSON.stringify(suggestion.models));
  else
    console.log(
      suggestionText(suggestion, config, config.plans.length === 0 ? planIds : config.plans.map(({ id }) => id)),
    );
  return 0;
}

function whyNone(offered: number, unseen: readonly string[]): string {
  if (offered > 0) return "the configuration has everything that the nodes list";
  if (unseen.length > 0)
    return `no model is listed: ${unseen.join(", ")} cannot be asked now; start the server and try again`;
  return "no node lists a model: name one with --node URL, or start an engine on this machine";
}
