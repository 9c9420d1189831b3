// Usage records as a table; on a phone, each record is a small card.
import type { VNode } from "preact";
import type { UsageRow } from "../../api/usage.ts";
import { count, exactDollars } from "../format.ts";
import { isFreeOfCharge } from "../session.ts";
import { t } from "../texts.ts";
import { Button } from "./button.tsx";
import { type DataColumn, DataTable, figureColumn } from "./data-table.tsx";
import { Time } from "./time.tsx";

type UsageTableProps = Readonly<{
  rows: readonly UsageRow[];
  caption: string;
  /** For accounts with several keys. */
  showsKeys?: boolean;
  onChoose?: (row: UsageRow) => void;
  /** Of a list with pages. */
  next?: string | null;
}>;

export const UsageTable = ({ rows, caption, showsKeys = false, onChoose, ...pages }: UsageTableProps): VNode => (
  <DataTable
    name="usage"
    caption={caption}
    columns={columnsOf(showsKeys, isFreeOfCharge(rows), onChoose)}
    rows={rows}
    rowKey={({ request_id: id }) => id}
    first=""
    {...pages}
  />
);

/** The server sorts what has pages: the newest first. */
const unsorted = { sort: undefined };
const isSmall = { ...unsorted, look: "quiet", room: "wide" } as const;

const columnsOf = (
  showsKeys: boolean,
  isFree: boolean,
  onChoose: UsageTableProps["onChoose"],
): readonly DataColumn<UsageRow>[] => [
  {
    id: "model",
    name: "common.model",
    cell: (row) =>
      onChoose === undefined ? (
        <span class="nowrap">{row.model}</span>
      ) : (
        <Button caption={row.model} class="row-button nowrap" onClick={() => onChoose(row)} />
      ),
  },
  { id: "time", name: "chart.time", look: "nowrap quiet", cell: ({ time }) => <Time at={time} /> },
  {
    ...{ id: "endpoint", name: "over_time.split_endpoint", look: "nowrap quiet", room: "wide" },
    cell: ({ endpoint }) => endpoint.replace("/v1", ""),
  },
  ...(showsKeys
    ? [{ id: "key", name: "over_time.split_key", look: "parted quiet", cell: ({ key }: UsageRow) => key } as const]
    : []),
  figureColumn("input", "over_time.input", ({ input }) => input, count, unsorted),
  figureColumn("cached", "over_time.cached", (row) => row.cached_input, count, isSmall),
  figureColumn("output", "over_time.output", ({ output }) => output, count, unsorted),
  ...(isFree
    ? []
    : [
        figureColumn<UsageRow>("billed", "over_time.billed", () => null, count, {
          ...unsorted,
          cell: (row) => (
            <>
              {count(row.billed_tokens)}
              {row.estimated && (
                <span class="quiet" title={t("usage.estimated")}>
                  {" "}
                  ≈
                </span>
              )}
            </>
          ),
        }),
        figureColumn<UsageRow>("cost", "over_time.cost", (row) => row.cost_usd, exactDollars, unsorted),
      ]),
];
