// The batches of all accounts, newest first: how far they are, what they cost, and cancel.
import type { VNode } from "preact";
import { useEffect } from "preact/hooks";
import type { OperatorBatches } from "../../../api/batches.ts";
import { dollars, plural } from "../../format.ts";
import { AskButton } from "../../parts/asking-dialogs.tsx";
import { Meter } from "../../parts/meter.tsx";
import { Page } from "../../parts/page.tsx";
import { Empty, Loaded } from "../../parts/states.tsx";
import { buttonColumn, figures, Table } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { toast } from "../../parts/toasts.tsx";
import { get, post } from "../../request.ts";
import { useResource } from "../../resource.ts";
import { sells } from "../../session.ts";
import { batchLooks, dollarsPerToken, lookMs } from "../batches.tsx";
import { t } from "../../texts.ts";

type Batch = OperatorBatches["batches"][number];

export function OperatorBatchesPage(): VNode {
  const page = useResource(() => get("/operator/batches"), "operator-batches");
  const isBusy = page.value?.batches.some(({ ended_at }) => ended_at === null) === true;
  useEffect(() => {
    if (!isBusy) return;
    const looks = setInterval(page.reload, lookMs);
    return () => clearInterval(looks);
  }, [isBusy]);
  return (
    <Page title="All batches" lead="Of all accounts, newest first.">
      <section class="card flush" aria-label="Batches of all accounts">
        <Loaded resource={page} lines={6}>
          {({ batches }) =>
            batches.length === 0 ? (
              <Empty icon="batches" title={t("batches.none")}>
                <a data-leaves href="/docs/guide/clients#batches">
                  {t("batches.how")}
                </a>
              </Empty>
            ) : (
              <Table
                caption="Batches of all accounts, newest first"
                columns={["Batch", "Account", "Progress", ...figures("Cost"), buttonColumn()]}
              >
                {batches.map((batch) => (
                  <BatchLine key={batch.id} batch={batch} onCancelled={page.reload} />
                ))}
              </Table>
            )
          }
        </Loaded>
      </section>
    </Page>
  );
}

function BatchLine({ batch, onCancelled }: Readonly<{ batch: Batch; onCancelled: () => void }>): VNode {
  const { id, account, state, endpoint, model, lines, completed, failed, billed_tokens: billed, waits } = batch;
  return (
    <tr>
      <td class="break">
        <span class={`badge ${batchLooks[state] ?? "accent"}`}>{state.replace("_", " ")}</span> {model ?? endpoint}
        <div class="quiet small-text">
          <code>{id}</code> · <Time at={batch.created_at} />
        </div>
      </td>
      <td class="break" data-name="Account">
        {account ?? "erased"}
      </td>
      <td class="sentence">
        {lines > 0 && <Meter name="Lines" label={`Progress of ${id}`} value={completed + failed} of={lines} />}
        {failed > 0 && <div class="quiet small-text">{plural(failed, "line")} failed</div>}
        {waits !== null && <div class="quiet small-text">Waits: {waits}</div>}
      </td>
      <td class="number nowrap" data-name="Cost">
        {sells.value ? dollars(billed * dollarsPerToken) : "free"}
      </td>
      <td class="nowrap sentence">
        {batch.ended_at === null && (
          <AskButton
            caption="Cancel"
            label={`Cancel ${id}`}
            class="button small"
            title="Cancel the batch?"
            confirm="Cancel batch"
            onConfirm={async () => {
              await post("/operator/batches/cancel", { id });
              onCancelled();
              toast("The batch ends.");
            }}
          >
            <p>What has run stays charged, and {account ?? "its owner"} gets the answers. The rest does not run.</p>
          </AskButton>
        )}
      </td>
    </tr>
  );
}
