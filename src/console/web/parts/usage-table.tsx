// Usage records as a table; on a phone, each record is a small card.
import type { VNode } from "preact";
import type { UsageRow } from "../../api/usage.ts";
import { count, exactDollars } from "../format.ts";
import { isFreeOfCharge } from "../session.ts";
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
        "Model",
        "Time",
        "Endpoint",
        ...(showsKeys ? ["Key"] : []),
        ...figures("Input", "Cached input", "Output", ...(isFree ? [] : ["Balance tokens", "Cost"])),
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
    </Table>
  );
}
