// The account's batches: a file is dropped, its progress, speed, cost and expected end are shown, and its results downloaded.
import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { now } from "../clock.ts";
import { bytes, dollars, duration } from "../format.ts";
import { Confirm } from "../parts/asking-dialogs.tsx";
import { Button } from "../parts/button.tsx";
import { Card } from "../parts/card.tsx";
import { DropBox } from "../parts/drop-box.tsx";
import { Icon } from "../parts/icons.tsx";
import { FormError } from "../parts/field.tsx";
import { Meter } from "../parts/meter.tsx";
import { Page } from "../parts/page.tsx";
import { Empty, Loaded } from "../parts/states.tsx";
import { type DataColumn, DataTable, figureColumn } from "../parts/data-table.tsx";
import { Time } from "../parts/time.tsx";
import { toast } from "../parts/toasts.tsx";
import { askApi, saveFile, upload } from "../request.ts";
import { useAction, useResource } from "../resource.ts";
import { sells } from "../session.ts";
import { t } from "../texts.ts";

export const lookMs = 3_000;
const shownMax = 100;
/** Where the address that its lines ask stands in a file. */
const firstLineBytes = 1 << 20;
const dollarsPerToken = 5 / 1_000_000;

/** What of `/v1/batches` the page shows; times in seconds. */
type Batch = Readonly<{
  id: string;
  status: string;
  endpoint: string;
  model: string | null;
  created_at: number;
  in_progress_at: number | null;
  output_file_id: string | null;
  error_file_id: string | null;
  request_counts: Readonly<{ total: number; completed: number; failed: number }>;
  billed_tokens: number;
  waits: string | null;
  errors: Readonly<{ data: readonly Readonly<{ line: number | null; message: string }>[] }> | null;
}>;

const listed = async (): Promise<readonly Batch[]> =>
  ((await (await askApi(`/v1/batches?limit=${shownMax}`)).json()) as { data: Batch[] }).data;

/** The address that the first line asks; the server checks the others. */
async function endpointOf(file: File): Promise<string> {
  const [first = ""] = (await file.slice(0, firstLineBytes).text()).trimStart().split("\n", 1);
  try {
    return String((JSON.parse(first) as { url?: unknown }).url);
  } catch {
    throw new Error(t("batches.no_jsonl"));
  }
}

type Sending = Readonly<{ name: string; size: number; sent: number }>;

/** Uploads a file and makes a batch of it. */
function useSending(onMade: () => void) {
  const [sending, setSending] = useState<Sending | null>(null);
  const action = useAction();
  const send = (files: FileList | null | undefined): void => {
    const file = files?.[0];
    if (file === undefined) return;
    void action.run(async () => {
      try {
        const endpoint = await endpointOf(file);
        setSending({ name: file.name, size: file.size, sent: 0 });
        const id = await upload(file, (sent) => setSending({ name: file.name, size: file.size, sent }));
        const given = {
          input_file_id: id,
          endpoint,
          completion_window: "24h",
          metadata: { file: file.name.slice(0, 500) },
        };
        const body = JSON.stringify(given);
        await askApi("/v1/batches", { method: "POST", headers: { "content-type": "application/json" }, body });
        onMade();
      } finally {
        setSending(null);
      }
    });
  };
  return { action, sending, send };
}

export function BatchesPage(): VNode {
  const batches = useResource(listed, "batches");
  const { action, sending, send } = useSending(batches.reload);
  const [cancelling, setCancelling] = useState<Batch | null>(null);
  const chooser = useRef<HTMLInputElement>(null);
  const isBusy = batches.value?.some((batch) => !hasEnded(batch)) === true;
  useEffect(() => {
    if (!isBusy) return;
    const looks = setInterval(batches.reload, lookMs);
    return () => clearInterval(looks);
  }, [isBusy]);
  return (
    <Page
      title={t("menu.batches")}
      lead={t("batches.lead")}
      actions={
        <Button
          caption={t("batches.choose")}
          class="button primary"
          busy={action.busy}
          onClick={() => chooser.current?.click()}
        />
      }
    >
      <input
        ref={chooser}
        type="file"
        hidden
        aria-label={t("batches.file")}
        onChange={(event) => {
          send(event.currentTarget.files);
          event.currentTarget.value = "";
        }}
      />
      <Drop {...{ action, sending, send }} />
      <Card title={t("batches.yours")}>
        <Loaded resource={batches} lines={3}>
          {(shown) => <BatchTable batches={shown} onCancel={setCancelling} />}
        </Loaded>
      </Card>
      {cancelling !== null && (
        <CancelDialog
          batch={cancelling}
          onClose={() => setCancelling(null)}
          onDone={() => {
            setCancelling(null);
            batches.reload();
          }}
        />
      )}
    </Page>
  );
}

const Drop = ({ action, sending, send }: ReturnType<typeof useSending>): VNode => (
  <DropBox class="card drop-card" onFiles={send}>
    {sending === null ? (
      <p class="row quiet">
        <Icon name="upload" size={18} />
        <span>{t("batches.drop")}</span>
        <a data-leaves href="/docs/guide/clients#batches">
          {t("batches.how")}
        </a>
      </p>
    ) : (
      <Meter
        name={t("batches.uploading", { name: sending.name })}
        label={t("batches.upload")}
        value={sending.sent}
        of={sending.size}
        ofNote={t("batches.bytes")}
        about={t("batches.sent", { sent: bytes(sending.sent), size: bytes(sending.size) })}
      />
    )}
    <FormError message={action.error} />
  </DropBox>
);

type CancelProps = Readonly<{ batch: Batch; onClose: () => void; onDone: () => void }>;

const CancelDialog = ({ batch, onClose, onDone }: CancelProps): VNode => (
  <Confirm
    title={t("batches.cancel_ask")}
    confirm={t("batches.cancel")}
    onConfirm={async () => {
      await askApi(`/v1/batches/${batch.id}/cancel`, { method: "POST" });
      toast(t("batches.ends"));
      onDone();
    }}
    onClose={onClose}
  >
    <p>{t("batches.cancel_about")}</p>
  </Confirm>
);

const hasEnded = ({ status }: Batch): boolean => ["completed", "failed", "expired", "cancelled"].includes(status);

type TableProps = Readonly<{ batches: readonly Batch[]; onCancel: (batch: Batch) => void }>;

function BatchTable({ batches, onCancel }: TableProps): VNode {
  if (batches.length === 0)
    return (
      <Empty icon="batches" title={t("batches.none")}>
        {t("batches.none_about")}
      </Empty>
    );
  return (
    <DataTable
      name="own-batches"
      caption={t("menu.batches")}
      columns={columnsFor(onCancel)}
      rows={batches}
      rowKey={({ id }) => id}
      first="-batch"
    />
  );
}

/** A state that this console does not know is shown as the server calls it. */
export const batchState = (state: string): string => (isState(state) ? t(`batches.state_${state}`) : state);
const states = [
  "validating",
  "queued",
  "in_progress",
  "finalizing",
  "cancelling",
  "completed",
  "failed",
  "expired",
  "cancelled",
] as const;
const isState = (state: string): state is (typeof states)[number] => states.some((each) => each === state);

export const batchLooks: Readonly<Record<string, string>> = {
  completed: "good",
  failed: "bad",
  expired: "warn",
  cancelled: "warn",
};

const inDollars = (billed: number): string => (sells.value ? dollars(billed * dollarsPerToken) : t("batches.free"));

export const costColumn = <Row extends Readonly<{ billed_tokens: number }>>(): DataColumn<Row> =>
  figureColumn("cost", "common.cost", (row) => row.billed_tokens, inDollars, { look: "nowrap" });

const columnsFor = (onCancel: (batch: Batch) => void): readonly DataColumn<Batch>[] => [
  {
    id: "batch",
    name: "common.batch",
    look: "break",
    sort: ({ created_at: at }) => at,
    cell: ({ id, status, model, endpoint, created_at: at }) => (
      <>
        <span class={`badge ${batchLooks[status] ?? "accent"}`}>{batchState(status)}</span> {model ?? endpoint}
        <div class="quiet small-text">
          <code>{id}</code> · <Time at={new Date(at * 1000).toISOString()} />
        </div>
      </>
    ),
  },
  { id: "progress", name: "common.progress", look: "sentence", cell: (batch) => <Progress of={batch} /> },
  costColumn(),
  {
    id: "actions",
    name: "common.actions",
    isActions: true,
    cell: (batch) => (
      <>
        <Download batch={batch} of="output_file_id" caption={t("batches.answers")} />
        <Download batch={batch} of="error_file_id" caption={t("batches.errors")} />
        {!hasEnded(batch) && (
          <Button
            caption={t("common.cancel")}
            class="button small"
            aria-label={t("batches.cancel_of", { id: batch.id })}
            onClick={() => onCancel(batch)}
          />
        )}
      </>
    ),
  },
];

function Progress({ of: batch }: { of: Batch }): VNode {
  const { id, request_counts: counts, waits, errors } = batch;
  const { total, completed, failed } = counts;
  const [wrong] = errors?.data ?? [];
  return (
    <>
      {total > 0 && (
        <Meter name={courseOf(batch)} label={t("batches.progress_of", { id })} value={completed + failed} of={total} />
      )}
      {failed > 0 && <div class="quiet small-text">{t("batches.failed", { failed })}</div>}
      {waits !== null && <div class="quiet small-text">{t("batches.waits", { waits })}</div>}
      {wrong !== undefined && (
        <div class="small-text">
          {wrong.line !== null && t("batches.line", { line: wrong.line })}
          {wrong.message}
          {errors!.data.length > 1 && ` ${t("batches.more", { more: errors!.data.length - 1 })}`}
        </div>
      )}
    </>
  );
}

/** How fast it is and when it is expected to end, from its pace so far. */
function courseOf(batch: Batch): string {
  const { completed, failed, total } = batch.request_counts;
  const done = completed + failed;
  if (hasEnded(batch) || batch.in_progress_at === null || done === 0) return t("batches.lines");
  const perSecond = done / Math.max(1, now() / 1000 - batch.in_progress_at);
  const left = duration(((total - done) / perSecond) * 1000);
  return perSecond >= 1
    ? t("batches.pace_second", { pace: Math.round(perSecond), left })
    : t("batches.pace_minute", { pace: Math.round(perSecond * 60), left });
}

type DownloadProps = Readonly<{ batch: Batch; of: "output_file_id" | "error_file_id"; caption: string }>;

function Download({ batch, of, caption }: DownloadProps): VNode | null {
  const action = useAction();
  const file = batch[of];
  if (file === null) return null;
  const save = async (): Promise<void> => {
    const content = await (await askApi(`/v1/files/${file}/content`)).blob();
    saveFile(content, `${batch.id}-${of === "output_file_id" ? "answers" : "errors"}.jsonl`);
  };
  return (
    <>
      <Button
        caption={caption}
        class="button small"
        busy={action.busy}
        aria-label={t(of === "output_file_id" ? "batches.download_answers" : "batches.download_errors", {
          id: batch.id,
        })}
        onClick={() => void action.run(save).then((isDone) => isDone || toast(t("batches.unreadable"), "failed"))}
      />{" "}
    </>
  );
}
