// Usage records as a table; on a phone, each record is a small card.
import type { VNode } from "preact";
import type { UsageRow } from "../../api/usage.ts";
import { count, exactDollars } from "../format.ts";
import { isFreeOfCharge } from "../session.ts";
import { t } from "../texts.ts";
import { Time } from "./time.tsx";
import { Button } from "./button.tsx";
import { figures, Table } from "./table.tsx";

type UsageTableProps = Readonly<{
  rows: readonly UsageRow[];
  caption: string;
  /** For accounts with several keys. */
  showsKeys?: boolean;
  onChoose?: (row: UsageRow) => void;
}>;

export function UsageTable({ rows, caption, showsKeys = false, onChoose }: UsageTableProps): VNode {
  const isFree = isFreeOfCharge(rows);
  // If there is no cost, a phone has room for these.
  const wideOnly = isFree ? "" : " wide-only";
  return (
    <Table
      caption={caption}
      columns={[
        t("common.model"),
        t("chart.time"),
        t("over_time.split_endpoint"),
        ...(showsKeys ? [t("over_time.split_key")] : []),
        ...figures(
          t("over_time.input"),
          t("over_time.cached"),
          t("over_time.output"),
          ...(isFree ? [] : [t("over_time.billed"), t("over_time.cost")]),
        ),
      ]}
    >
      {rows.map((row) => (
        <tr key={row.request_id}>
          <td>
            {onChoose === undefined ? (
              <span class="nowrap">{row.model}</span>
            ) : (
              <Button caption={row.model} class="row-button nowrap" onClick={() => onChoose(row)} />
            )}
          </td>
          <td class="nowrap quiet">
            <Time at={row.time} />
          </td>
          <td class="nowrap quiet wide-only">{row.endpoint.replace("/v1", "")}</td>
          {showsKeys && <td class="break quiet">{row.key}</td>}
          <td class={`number${wideOnly}`} data-name={t("over_time.input")}>
            {count(row.input)}
          </td>
          <td class="number wide-only quiet">{count(row.cached_input)}</td>
          <td class={`number${wideOnly}`} data-name={t("over_time.output")}>
            {count(row.output)}
          </td>
          {!isFree && (
            <>
              <td class="number" data-name={t("over_time.billed")}>
                {count(row.billed_tokens)}
                {row.estimated && (
                  <span class="quiet" title={t("usage.estimated")}>
                    {" "}
                    ≈
                  </span>
                )}
              </td>
              <td class="number">{exactDollars(row.cost_usd)}</td>
            </>
          )}
        </tr>
      ))}
    </Table>
  );
}
