// The batches of all accounts, newest first: how far they are, what they cost, and cancel.
import type { VNode } from "preact";
import { useEffect } from "preact/hooks";
import type { OperatorBatches } from "../../../api/batches.ts";
import { AskButton } from "../../parts/asking-dialogs.tsx";
import { Meter } from "../../parts/meter.tsx";
import { Page } from "../../parts/page.tsx";
import { Empty, Loaded } from "../../parts/states.tsx";
import { type DataColumn, DataTable } from "../../parts/data-table.tsx";
import { Time } from "../../parts/time.tsx";
import { toast } from "../../parts/toasts.tsx";
import { get, post } from "../../request.ts";
import { useResource } from "../../resource.ts";
import { batchLooks, batchState, costColumn, lookMs } from "../batches.tsx";
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
    <Page title={t("menu.all_batches")} lead={t("all_batches.lead")}>
      <section class="card flush" aria-label={t("menu.all_batches")}>
        <Loaded resource={page} lines={6}>
          {({ batches }) =>
            batches.length === 0 ? (
              <Empty icon="batches" title={t("batches.none")}>
                <a data-leaves href="/docs/guide/clients#batches">
                  {t("batches.how")}
                </a>
              </Empty>
            ) : (
              <DataTable
                name="batches"
                caption={t("all_batches.caption")}
                columns={columnsFor(page.reload)}
                rows={batches}
                rowKey={({ id }) => id}
                first="-batch"
              />
            )
          }
        </Loaded>
      </section>
    </Page>
  );
}

const columnsFor = (onCancelled: () => void): readonly DataColumn<Batch>[] => [
  {
    id: "batch",
    name: "common.batch",
    look: "break",
    sort: ({ created_at: at }) => Date.parse(at),
    cell: ({ id, state, model, endpoint, created_at: at }) => (
      <>
        <span class={`badge ${batchLooks[state] ?? "accent"}`}>{batchState(state)}</span> {model ?? endpoint}
        <div class="quiet small-text">
          <code>{id}</code> · <Time at={at} />
        </div>
      </>
    ),
  },
  {
    id: "account",
    name: "common.account",
    look: "break",
    sort: ({ account }) => account,
    cell: ({ account }) => account ?? t("all_batches.erased"),
  },
  {
    id: "progress",
    name: "common.progress",
    look: "sentence",
    sort: ({ lines, completed, failed }) => (lines === 0 ? 0 : (completed + failed) / lines),
    cell: ({ id, lines, completed, failed, waits }) => (
      <>
        {lines > 0 && (
          <Meter
            name={t("batches.lines")}
            label={t("batches.progress_of", { id })}
            value={completed + failed}
            of={lines}
          />
        )}
        {failed > 0 && <div class="quiet small-text">{t("batches.failed", { failed })}</div>}
        {waits !== null && <div class="quiet small-text">{t("batches.waits", { waits })}</div>}
      </>
    ),
  },
  costColumn(),
  {
    id: "actions",
    name: "common.actions",
    isActions: true,
    cell: (batch) => batch.ended_at === null && <CancelButton batch={batch} onCancelled={onCancelled} />,
  },
];

const CancelButton = ({ batch: { id, account }, onCancelled }: { batch: Batch; onCancelled: () => void }): VNode => (
  <AskButton
    caption={t("common.cancel")}
    label={t("batches.cancel_of", { id })}
    class="button small"
    title={t("batches.cancel_ask")}
    confirm={t("batches.cancel")}
    onConfirm={async () => {
      await post("/operator/batches/cancel", { id });
      onCancelled();
      toast(t("batches.ends"));
    }}
  >
    <p>{account === null ? t("batches.cancel_about") : t("all_batches.cancel_about", { account })}</p>
  </AskButton>
);
