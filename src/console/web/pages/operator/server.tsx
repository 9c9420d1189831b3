// The server itself: how it is at a glance, its configuration, backups and webhooks.
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
import { Card } from "../../parts/card.tsx";
import { Fact } from "../../parts/fact.tsx";
import { Figure } from "../../parts/figure.tsx";
import { type DataColumn, DataTable, figureColumn } from "../../parts/data-table.tsx";
import { session } from "../../session.ts";
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
            <Glance server={value} />
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

/** What somebody who comes here asks first. */
function Glance({ server }: Pick<PartProps, "server">): VNode {
  const { gateway, started_at: startedAt, disk_free_bytes: free, backups, backup_folder: folder } = server;
  const [last] = backups;
  const isLow = free !== null && free < lowBytes;
  return (
    <section class="grid-3" aria-label={t("server.glance")}>
      <Figure name={t("server.version")} value={session.value?.version ?? null}>
        {rich("server.running_since", { time: <Time at={startedAt} /> })}
        {gateway !== null && <> · {gateway}</>}
      </Figure>
      {folder !== null && (
        <Figure name={t("server.last_backup")} value={last === undefined ? t("server.never") : ago(last.made_at)}>
          {last === undefined ? (
            <span class="badge warn">{t("server.no_backup")}</span>
          ) : (
            t("server.of_size", { size: bytes(last.bytes), backups: backups.length })
          )}
        </Figure>
      )}
      {free !== null && (
        <Figure name={t("server.disk")} value={bytes(free)}>
          {isLow ? <span class="badge bad">{t("server.disk_low")}</span> : t("server.disk_about")}
        </Figure>
      )}
    </section>
  );
}

function Configuration({ server, onChanged }: PartProps): VNode {
  const { gateway, config_file: file, config_loaded_at: loadedAt } = server;
  return (
    <Card
      title={t("menu.config")}
      aria-label={t("menu.config")}
      side={
        <div class="actions">
          <AskButton
            caption={t("server.reload")}
            class="button small"
            disabled={file === null}
            title={t("server.reload_ask")}
            confirm={t("server.reload_do")}
            danger={false}
            onConfirm={async () => onChanged(await post("/operator/server/reload"))}
          >
            <p>{t("server.reload_about")}</p>
          </AskButton>
          {file !== null && (
            <a class="button small" href="/operator/config">
              {t("server.edit")}
            </a>
          )}
        </div>
      }
    >
      <div class="card-text">
        <dl class="facts start">
          {gateway !== null && (
            <Fact name={t("server.gateway")} class="break" value={t("server.gateway_own", { gateway })} />
          )}
          <Fact
            name={t("server.file")}
            class="break"
            value={file === null ? t("server.no_file") : <code>{file}</code>}
          />
          <Fact name={t("server.read")} value={<Time at={loadedAt} />} />
        </dl>
        <div role="status" class="after">
          {server.reload !== null && <ReloadOutcome of={server.reload} />}
        </div>
      </div>
    </Card>
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
  <Card title={t("server.backup")} aria-label={t("server.backup")}>
    <p class="card-text quiet">{rich("server.backup_postgres", { code })}</p>
  </Card>
);

/** As where the operators' first page warns. */
const lowBytes = 1 << 30;

function Backup({ server, onChanged }: PartProps): VNode {
  const action = useAction();
  const { backup } = server;
  const running = backup?.state === "running";
  const make = (): void => void action.run(async () => onChanged(await post("/operator/server/backup")));
  return (
    <Card
      title={t("server.backup")}
      aria-label={t("server.backup")}
      side={
        <Button
          caption={t(running ? "server.backup_running" : "server.backup_make")}
          class="button small"
          busy={running || action.busy}
          onClick={make}
        />
      }
    >
      <div class="card-text">
        <p class="quiet">
          {rich("server.backup_about", { folder: <code>{server.backup_folder}</code> })}{" "}
          <Schedule of={server.backup_schedule} />
        </p>
        <div role="status" class="after">
          {backup !== null && <BackupOutcome of={backup} />}
        </div>
        <FormError message={action.error} />
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
    </Card>
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
