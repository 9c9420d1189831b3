// A table of models: what they read, what they can do and what they cost.
import type { VNode } from "preact";
import type { ConsoleModels } from "../../api/overview.ts";
import { isVoice, pricedUnits } from "../../../core/model-kinds.ts";
import { cents } from "../format.ts";
import { sells } from "../session.ts";
import { figures, Table } from "./table.tsx";

type ConsoleModel = ConsoleModels["models"][number];

const formats = { json_schema: "JSON schema", json_object: "JSON object", none: "–" } as const;

export const ModelTable = ({ models }: { models: readonly ConsoleModel[] }): VNode => (
  <Table
    caption="Models"
    columns={[
      "Model",
      ...figures(...(sells.value ? ["Input / cached / output"] : [])),
      "Reads",
      "Structured output",
      { figure: "Context" },
      "Served",
    ]}
  >
    {models.map((model) => (
      <tr key={model.id}>
        <td class="nowrap">{model.id}</td>
        {sells.value && <td class="number nowrap">{priceOf(model)}</td>}
        <td class="quiet nowrap">
          {model.kind === "transcription" ? "Audio" : model.reads_images ? "Text, images" : "Text"}
        </td>
        <td class="quiet nowrap wide-only">{formats[model.structured_output]}</td>
        <td
          class={sells.value ? "number quiet" : "number quiet sentence"}
          data-name={sells.value ? undefined : "Context"}
        >
          {Math.round(model.context_tokens / 1024)}K
        </td>
        <td class="wide-only">
          <ServedBadge model={model} />
        </td>
      </tr>
    ))}
  </Table>
);

const ServedBadge = ({ model }: { model: ConsoleModel }): VNode => {
  if (!model.served) return <span class="badge">No node</span>;
  if (!model.available) return <span class="badge bad">Node down</span>;
  return <span class="badge good">Served</span>;
};

function priceOf({ flat_price, kind, price }: ConsoleModel): string {
  if (price.input_cents + price.cached_input_cents + price.output_cents === 0) return "free: no price set";
  if (isVoice(kind)) {
    const { units, in: unit } = pricedUnits[kind];
    return `$${Number(((price.input_cents * units) / 100_000_000).toPrecision(8))} per ${unit}`;
  }
  if (flat_price) return `${cents(price.input_cents)} flat`;
  return `${cents(price.input_cents)} / ${cents(price.cached_input_cents)} / ${cents(price.output_cents)}`;
}
