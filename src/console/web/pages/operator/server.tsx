// The server itself: reloads the configuration, makes backups, and shows the webhooks.
import type { ComponentChildren, VNode } from "preact";
import type { BackupFile, BackupResult, OperatorServer, ReloadResult } from "../../../api/server.ts";
import { ago, bytes, moment, shortTime, utc } from "../../format.ts";
import { AskButton } from "../../parts/asking-dialogs.tsx";
import { FormError } from "../../parts/field.tsx";
import { Page } from "../../parts/page.tsx";
import { Loaded } from "../../parts/states.tsx";
import { Webhooks } from "./webhooks.tsx";
import { get, post } from "../../request.ts";
import { useAction, useEvery, useResource } from "../../resource.ts";
import { Time } from "../../parts/time.tsx";
import { Button } from "../../parts/button.tsx";
import { Fact } from "../../parts/fact.tsx";
import { type DataColumn, DataTable, figureColumn } from "../../parts/data-table.tsx";
import { rich, t } from "../../texts.ts";
import { code } from "../../parts/inline.tsx";

/** How often the page asks for the state of a running backup. */
const refreshMs = 1_000;
const hourMs = 3_600_000;

const bad = (inner: ComponentChildren): VNode => <span class="badge bad">{inner}</span>;

export function ServerPage(): VNode {
  const server = useResource(() => get("/operator/server"), "server");
  const running = server.value?.backup?.state === "running";
  useEvery(running ? refreshMs : null, server.reload);
  return (
    <Page title={t("menu.server")} lead={t("server.lead")}>
      <Loaded resource={server} lines={8}>
        {(value) => (
          <div class="stack-large">
            <Configuration server={value} onChanged={server.replace} />
            {value.backup_folder === null ? <DatabaseBackup /> : <Backup server={value} onChanged={server.replace} />}
            <Webhooks webhooks={value.webhooks} onTested={server.reload} />
          </div>
        )}
      </Loaded>
    </Page>
  );
}

type PartProps = Readonly<{ server: OperatorServer; onChanged: (next: OperatorServer) => void }>;

function Configuration({ server, onChanged }: PartProps): VNode {
  const { gateway, config_file: file, config_loaded_at: loadedAt } = server;
  return (
    <section class="card stack" aria-label={t("menu.config")}>
      <h2>{t("menu.config")}</h2>
      <dl class="facts start">
        {gateway !== null && (
          <Fact name={t("server.gateway")} class="break" value={t("server.gateway_own", { gateway })} />
        )}
        <Fact name={t("server.file")} class="break" value={file === null ? t("server.no_file") : <code>{file}</code>} />
        <Fact name={t("server.read")} value={<Time at={loadedAt} />} />
      </dl>
      <div role="status">{server.reload !== null && <ReloadOutcome of={server.reload} />}</div>
      <div>
        <AskButton
          caption={t("server.reload")}
          disabled={file === null}
          title={t("server.reload_ask")}
          confirm={t("server.reload_do")}
          danger={false}
          onConfirm={async () => onChanged(await post("/operator/server/reload"))}
        >
          <p>{t("server.reload_about")}</p>
        </AskButton>
      </div>
    </section>
  );
}

const ReloadOutcome = ({ of }: { of: ReloadResult }): VNode =>
  of.refused !== null ? (
    <div class="stack">
      <p>{rich("server.refused", { badge: bad })}</p>
      <pre class="message">{of.refused}</pre>
    </div>
  ) : (
    <dl class="facts start">
      <Fact
        name={t("server.changed")}
        value={of.applied.length === 0 ? t("server.changed_nothing") : <Names of={of.applied} look="good" />}
      />
      {of.needs_restart.length > 0 && (
        <Fact name={t("server.needs_restart")} value={<Names of={of.needs_restart} look="warn" />} />
      )}
    </dl>
  );

const Names = ({ of, look }: { of: readonly string[]; look: string }): VNode => (
  <span class="row">
    {of.map((name) => (
      <span key={name} class={`badge ${look}`}>
        {name}
      </span>
    ))}
  </span>
);

const DatabaseBackup = (): VNode => (
  <section class="card stack" aria-label={t("server.backup")}>
    <h2>{t("server.backup")}</h2>
    <p class="quiet small-text">{rich("server.backup_postgres", { code })}</p>
  </section>
);

/** As where the operators' first page warns. */
const lowBytes = 1 << 30;

function Backup({ server, onChanged }: PartProps): VNode {
  const action = useAction();
  const { backup } = server;
  const running = backup?.state === "running";
  const make = (): void => void action.run(async () => onChanged(await post("/operator/server/backup")));
  return (
    <section class="card stack" aria-label={t("server.backup")}>
      <h2>{t("server.backup")}</h2>
      <p class="quiet small-text">{rich("server.backup_about", { folder: <code>{server.backup_folder}</code> })}</p>
      <p class="quiet small-text">
        <Schedule of={server.backup_schedule} />
      </p>
      {server.disk_free_bytes !== null && (
        <p>
          <span class={server.disk_free_bytes < lowBytes ? "badge bad" : "badge"}>
            {t("server.disk_free", { size: bytes(server.disk_free_bytes) })}
          </span>
        </p>
      )}
      <div role="status">{backup !== null && <BackupOutcome of={backup} />}</div>
      <FormError message={action.error} />
      <div>
        <Button
          caption={t(running ? "server.backup_running" : "server.backup_make")}
          busy={running || action.busy}
          onClick={make}
        />
      </div>
      {server.backups.length > 0 && (
        <DataTable
          caption={t("server.backups")}
          columns={files}
          rows={server.backups}
          rowKey={({ file }) => file}
          first="-made"
        />
      )}
    </section>
  );
}

const Schedule = ({ of }: { of: OperatorServer["backup_schedule"] }): VNode =>
  of === null ? (
    <>{rich("server.schedule_none", { code })}</>
  ) : (
    <>{t("server.schedule", { hours: of.every_ms / hourMs, keep: of.keep })}</>
  );

const files: readonly DataColumn<BackupFile>[] = [
  { id: "file", name: "server.file", look: "break", sort: ({ file }) => file, cell: ({ file }) => <code>{file}</code> },
  {
    ...{ id: "made", name: "common.made", look: "nowrap quiet" },
    sort: (row) => Date.parse(row.made_at),
    cell: (row) => <Time at={row.made_at} shown={moment} />,
  },
  figureColumn("size", "common.size", (row) => row.bytes, bytes, { look: "nowrap" }),
];

const looks = {
  running: ["", "server.state_running"],
  done: ["good", "server.state_done"],
  failed: ["bad", "server.state_failed"],
} as const;

function BackupOutcome({ of }: { of: BackupResult }): VNode {
  const [look, words] = looks[of.state];
  return (
    <div class="stack">
      <dl class="facts start">
        <Fact name={t("server.last_backup")} value={<span class={`badge ${look}`}>{t(words)}</span>} />
        <Fact name={t("server.file")} class="break" value={<code>{of.file}</code>} />
        <Fact name={t("server.started")} title={utc(of.started_at)} value={ago(of.started_at)} />
        {of.state === "done" && (
          <>
            <Fact name={t("common.size")} class="number" value={bytes(of.bytes)} />
            <Fact name={t("server.took")} class="number" value={shortTime(of.duration_ms)} />
          </>
        )}
      </dl>
      {of.state === "failed" && <pre class="message">{of.message}</pre>}
    </div>
  );
}
