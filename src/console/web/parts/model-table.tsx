// A table of models: what they read, what they can do and what they cost.
import type { VNode } from "preact";
import type { ConsoleModels } from "../../api/overview.ts";
import { isVoice, pricedUnits } from "../../../core/model-kinds.ts";
import { cents } from "../format.ts";
import { sells } from "../session.ts";
import { type DataColumn, DataTable, figureColumn } from "./data-table.tsx";
import { t, type TextKey } from "../texts.ts";

type ConsoleModel = ConsoleModels["models"][number];

const formats = {
  json_schema: "models_table.json_schema",
  json_object: "models_table.json_object",
  none: null,
} as const;

const columnsOf = (isPriced: boolean): readonly DataColumn<ConsoleModel>[] => [
  { id: "model", name: "common.model", look: "nowrap", sort: ({ id }) => id, cell: ({ id }) => id },
  ...(isPriced
    ? [{ id: "prices", name: "models_table.prices", isFigure: true, look: "nowrap", cell: priceOf } as const]
    : []),
  { id: "reads", name: "models_table.reads", look: "quiet nowrap", cell: (model) => t(readsOf(model)) },
  {
    id: "structured",
    name: "models_table.structured",
    look: "quiet nowrap",
    room: "wide",
    cell: (model) => <Format of={model.structured_output} />,
  },
  figureColumn("context", "models_table.context", (model) => model.context_tokens, kibi, { look: "quiet" }),
  { id: "served", name: "models_table.served", room: "wide", cell: (model) => <ServedBadge model={model} /> },
];

const kibi = (tokens: number): string => `${Math.round(tokens / 1024)}K`;

export const ModelTable = ({ models }: { models: readonly ConsoleModel[] }): VNode => (
  <DataTable
    caption={t("menu.models")}
    columns={columnsOf(sells.value)}
    rows={models}
    rowKey={({ id }) => id}
    first=""
  />
);

const readsOf = ({ kind, reads_images: readsImages }: ConsoleModel): TextKey =>
  kind === "transcription" ? "models_table.audio" : readsImages ? "models_table.text_images" : "models_table.text";

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
