// A table of models: what they read, what they can do and what they cost.
import type { VNode } from "preact";
import type { ConsoleModels } from "../../api/overview.ts";
import { isVoice, pricedUnits } from "../../../core/model-kinds.ts";
import { cents } from "../format.ts";
import { sells } from "../session.ts";
import { figures, Table } from "./table.tsx";
import { t } from "../texts.ts";

type ConsoleModel = ConsoleModels["models"][number];

const formats = {
  json_schema: "models_table.json_schema",
  json_object: "models_table.json_object",
  none: null,
} as const;

export const ModelTable = ({ models }: { models: readonly ConsoleModel[] }): VNode => (
  <Table
    caption={t("menu.models")}
    columns={[
      t("common.model"),
      ...figures(...(sells.value ? [t("models_table.prices")] : [])),
      t("models_table.reads"),
      t("models_table.structured"),
      { figure: t("models_table.context") },
      t("models_table.served"),
    ]}
  >
    {models.map((model) => (
      <tr key={model.id}>
        <td class="nowrap">{model.id}</td>
        {sells.value && <td class="number nowrap">{priceOf(model)}</td>}
        <td class="quiet nowrap">
          {t(
            model.kind === "transcription"
              ? "models_table.audio"
              : model.reads_images
                ? "models_table.text_images"
                : "models_table.text",
          )}
        </td>
        <td class="quiet nowrap wide-only">
          <Format of={model.structured_output} />
        </td>
        <td
          class={sells.value ? "number quiet" : "number quiet sentence"}
          data-name={sells.value ? undefined : t("models_table.context")}
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

const Format = ({ of }: { of: ConsoleModel["structured_output"] }): VNode => {
  const key = formats[of];
  return <>{key === null ? "–" : t(key)}</>;
};

const ServedBadge = ({ model }: { model: ConsoleModel }): VNode => {
  if (!model.served) return <span class="badge">{t("palette.no_node")}</span>;
  if (!model.available) return <span class="badge bad">{t("models_table.down")}</span>;
  return <span class="badge good">{t("models_table.served")}</span>;
};

function priceOf({ flat_price, kind, price }: ConsoleModel): string {
  if (price.input_cents + price.cached_input_cents + price.output_cents === 0) return t("models_table.free");
  if (isVoice(kind)) {
    const { units, in: unit } = pricedUnits[kind];
    return `$${Number(((price.input_cents * units) / 100_000_000).toPrecision(8))} per ${unit}`;
  }
  if (flat_price) return t("models_table.flat", { price: cents(price.input_cents) });
  return `${cents(price.input_cents)} / ${cents(price.cached_input_cents)} / ${cents(price.output_cents)}`;
}
