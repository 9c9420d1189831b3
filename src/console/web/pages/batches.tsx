// The account's batches: a file is dropped, its progress, speed, cost and expected end are shown, and its results downloaded.
import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { now } from "../clock.ts";
import { bytes, count, dollars, duration, plural } from "../format.ts";
import { Confirm } from "../parts/asking-dialogs.tsx";
import { Button } from "../parts/button.tsx";
import { Card } from "../parts/card.tsx";
import { DropBox } from "../parts/drop-box.tsx";
import { FormError } from "../parts/field.tsx";
import { Meter } from "../parts/meter.tsx";
import { Page } from "../parts/page.tsx";
import { Empty, Loaded } from "../parts/states.tsx";
import { type DataColumn, DataTable } from "../parts/data-table.tsx";
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
export const dollarsPerToken = 5 / 1_000_000;

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
    throw new Error("This is no JSONL file: its first line must be a request such as the guide shows.");
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
      title="Batches"
      lead="Many requests in one file, answered while nobody else needs the machines."
      actions={
        <Button
          caption="Choose a file"
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
        aria-label="A file of requests"
        onChange={(event) => {
          send(event.currentTarget.files);
          event.currentTarget.value = "";
        }}
      />
      <DropBox class="card drop-card" onFiles={send}>
        {sending === null ? (
          <p class="quiet">Drop a JSONL file here: one request a line, as for OpenAI&#39;s batches.</p>
        ) : (
          <Meter
            name={`Uploading ${sending.name}`}
            label="Upload"
            value={sending.sent}
            of={sending.size}
            ofNote=" bytes"
            about={`${bytes(sending.sent)} of ${bytes(sending.size)}`}
          />
        )}
        <FormError message={action.error} />
      </DropBox>
      <Card title="Your batches">
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

type CancelProps = Readonly<{ batch: Batch; onClose: () => void; onDone: () => void }>;

const CancelDialog = ({ batch, onClose, onDone }: CancelProps): VNode => (
  <Confirm
    title="Cancel the batch?"
    confirm="Cancel batch"
    onConfirm={async () => {
      await askApi(`/v1/batches/${batch.id}/cancel`, { method: "POST" });
      toast("The batch ends.");
      onDone();
    }}
    onClose={onClose}
  >
    <p>What has run stays charged, and you get its answers. The rest does not run.</p>
  </Confirm>
);

const hasEnded = ({ status }: Batch): boolean => ["completed", "failed", "expired", "cancelled"].includes(status);

type TableProps = Readonly<{ batches: readonly Batch[]; onCancel: (batch: Batch) => void }>;

function BatchTable({ batches, onCancel }: TableProps): VNode {
  if (batches.length === 0)
    return (
      <Empty icon="batches" title={t("batches.none")}>
        <a data-leaves href="/docs/guide/clients#batches">
          {t("batches.how")}
        </a>
      </Empty>
    );
  return (
    <DataTable
      name="own-batches"
      caption="Batches"
      columns={columnsFor(onCancel)}
      rows={batches}
      rowKey={({ id }) => id}
      first="-batch"
    />
  );
}

export const batchLooks: Readonly<Record<string, string>> = {
  completed: "good",
  failed: "bad",
  expired: "warn",
  cancelled: "warn",
};

const columnsFor = (onCancel: (batch: Batch) => void): readonly DataColumn<Batch>[] => [
  {
    id: "batch",
    name: "common.batch",
    look: "break",
    sort: ({ created_at: at }) => at,
    cell: ({ id, status, model, endpoint, created_at: at }) => (
      <>
        <span class={`badge ${batchLooks[status] ?? "accent"}`}>{status.replace("_", " ")}</span> {model ?? endpoint}
        <div class="quiet small-text">
          <code>{id}</code> · <Time at={new Date(at * 1000).toISOString()} />
        </div>
      </>
    ),
  },
  { id: "progress", name: "common.progress", look: "sentence", cell: (batch) => <Progress of={batch} /> },
  {
    id: "cost",
    name: "common.cost",
    isFigure: true,
    look: "nowrap",
    sort: ({ billed_tokens: billed }) => billed,
    cell: ({ billed_tokens: billed }) => (sells.value ? dollars(billed * dollarsPerToken) : "free"),
  },
  {
    id: "actions",
    name: "common.actions",
    isActions: true,
    cell: (batch) => (
      <>
        <Download batch={batch} of="output_file_id" caption="Answers" />
        <Download batch={batch} of="error_file_id" caption="Errors" />
        {!hasEnded(batch) && (
          <Button
            caption="Cancel"
            class="button small"
            aria-label={`Cancel ${batch.id}`}
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
      {total > 0 && <Meter name={courseOf(batch)} label={`Progress of ${id}`} value={completed + failed} of={total} />}
      {failed > 0 && <div class="quiet small-text">{plural(failed, "line")} failed</div>}
      {waits !== null && <div class="quiet small-text">Waits: {waits}</div>}
      {wrong !== undefined && (
        <div class="small-text">
          {wrong.line !== null && `Line ${wrong.line}: `}
          {wrong.message}
          {errors!.data.length > 1 && ` And ${count(errors!.data.length - 1)} more.`}
        </div>
      )}
    </>
  );
}

/** How fast it is and when it is expected to end, from its pace so far. */
function courseOf(batch: Batch): string {
  const { completed, failed, total } = batch.request_counts;
  const done = completed + failed;
  if (hasEnded(batch) || batch.in_progress_at === null || done === 0) return "Lines";
  const perSecond = done / Math.max(1, now() / 1000 - batch.in_progress_at);
  const pace =
    perSecond >= 1 ? `${count(Math.round(perSecond))} a second` : `${count(Math.round(perSecond * 60))} a minute`;
  return `${pace}, about ${duration(((total - done) / perSecond) * 1000)} left`;
}

type DownloadProps = Readonly<{ batch: Batch; of: "output_file_id" | "error_file_id"; caption: string }>;

function Download({ batch, of, caption }: DownloadProps): VNode | null {
  const action = useAction();
  const file = batch[of];
  if (file === null) return null;
  const save = async (): Promise<void> => {
    const content = await (await askApi(`/v1/files/${file}/content`)).blob();
    saveFile(content, `${batch.id}-${caption.toLowerCase()}.jsonl`);
  };
  return (
    <>
      <Button
        caption={caption}
        class="button small"
        busy={action.busy}
        aria-label={`Download the ${caption.toLowerCase()} of ${batch.id}`}
        onClick={() => void action.run(save).then((isDone) => isDone || toast("The file could not be read.", "failed"))}
      />{" "}
    </>
  );
}
