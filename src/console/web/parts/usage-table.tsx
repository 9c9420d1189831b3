// Usage records as a table; on a phone, each record is a small card.
import type { VNode } from "preact";
import type { UsageRow } from "../../api/usage.ts";
import { ago, count, exactDollars, utc } from "../format.ts";
import { isFreeOfCharge } from "../session.ts";
import { TableHead } from "./table-head.tsx";

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
    <div class="table-scroll">
      <table class="cards">
        <caption class="for-readers">{caption}</caption>
        <TableHead
          texts={["Model", "Time", "Endpoint", ...(showsKeys ? ["Key"] : [])]}
          figures={["Input", "Cached input", "Output", ...(isFree ? [] : ["Balance tokens", "Cost"])]}
        />
        <tbody>
          {rows.map((row) => (
            <tr key={row.request_id}>
              <td>
                {onChoose === undefined ? (
                  <span class="nowrap">{row.model}</span>
                ) : (
                  <button type="button" class="row-button nowrap" onClick={() => onChoose(row)}>
                    {row.model}
                  </button>
                )}
              </td>
              <td class="nowrap quiet">
                <time dateTime={row.time} title={utc(row.time)}>
                  {ago(row.time)}
                </time>
              </td>
              <td class="nowrap quiet wide-only">{row.endpoint.replace("/v1", "")}</td>
              {showsKeys && <td class="break quiet">{row.key}</td>}
              <td class={`number${wideOnly}`} data-name="Input">
                {count(row.input)}
              </td>
              <td class="number wide-only quiet">{count(row.cached_input)}</td>
              <td class={`number${wideOnly}`} data-name="Output">
                {count(row.output)}
              </td>
              {!isFree && (
                <>
                  <td class="number" data-name="Billed">
                    {count(row.billed_tokens)}
                    {row.estimated && (
                      <span class="quiet" title="The node reported no usage, so the gateway counted the tokens">
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
        </tbody>
      </table>
    </div>
  );
}
