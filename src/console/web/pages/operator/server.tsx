// The server itself: reloads the configuration, makes backups, and shows the webhooks.
import type { VNode } from "preact";
import type { BackupFile, BackupResult, OperatorServer, ReloadResult } from "../../../api/server.ts";
import { ago, bytes, count, interval, moment, utc } from "../../format.ts";
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
import { figures, Table } from "../../parts/table.tsx";

/** How often the page asks for the state of a running backup. */
const refreshMs = 1_000;

export function ServerPage(): VNode {
  const server = useResource(() => get("/operator/server"), "server");
  const running = server.value?.backup?.state === "running";
  useEvery(running ? refreshMs : null, server.reload);
  return (
    <Page title="Server" lead="The active configuration, backups and notices.">
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
    <section class="card stack" aria-label="Configuration">
      <h2>Configuration</h2>
      <dl class="facts">
        {gateway !== null && (
          <Fact name="Gateway" class="break" value={`${gateway}; each gateway has its own configuration`} />
        )}
        <Fact
          name="File"
          class="break"
          value={file === null ? "none: only flags and environment variables" : <code>{file}</code>}
        />
        <Fact name="Read" value={<Time at={loadedAt} />} />
      </dl>
      <div role="status">{server.reload !== null && <ReloadOutcome of={server.reload} />}</div>
      <div>
        <AskButton
          caption="Reload configuration"
          disabled={file === null}
          title="Reload the configuration?"
          confirm="Reload"
          danger={false}
          onConfirm={async () => onChanged(await post("/operator/server/reload"))}
        >
          <p>
            Settings that can change while the server runs apply at once, to all accounts. The page then names those
            that need a restart. Answers in progress continue. A file with an error changes nothing.
          </p>
        </AskButton>
      </div>
    </section>
  );
}

const ReloadOutcome = ({ of }: { of: ReloadResult }): VNode =>
  of.refused !== null ? (
    <div class="stack">
      <p>
        <span class="badge bad">Refused</span> Nothing was changed.
      </p>
      <pre class="message">{of.refused}</pre>
    </div>
  ) : (
    <dl class="facts">
      <Fact name="Changed" value={of.applied.length === 0 ? "nothing" : <Names of={of.applied} look="good" />} />
      {of.needs_restart.length > 0 && (
        <Fact name="Needs a restart" value={<Names of={of.needs_restart} look="warn" />} />
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
  <section class="card stack" aria-label="Backup">
    <h2>Backup</h2>
    <p class="quiet small-text">
      The ledger is in PostgreSQL: <code>pg_dump</code> or continuous archiving backs it up.
    </p>
  </section>
);

function Backup({ server, onChanged }: PartProps): VNode {
  const action = useAction();
  const { backup } = server;
  const running = backup?.state === "running";
  const make = (): void => void action.run(async () => onChanged(await post("/operator/server/backup")));
  return (
    <section class="card stack" aria-label="Backup">
      <h2>Backup</h2>
      <p class="quiet small-text">
        Copies the ledger with all accounts, balances and usage to a new file in <code>{server.backup_folder}</code>,
        and checks the copy. Requests continue meanwhile.
      </p>
      <p class="quiet small-text">
        <Schedule of={server.backup_schedule} />
      </p>
      {server.disk_free_bytes !== null && (
        <p class="quiet small-text">{bytes(server.disk_free_bytes)} free on the disk of the ledger.</p>
      )}
      <div role="status">{backup !== null && <BackupOutcome of={backup} />}</div>
      <FormError message={action.error} />
      <div>
        <Button caption={running ? "Making a backup…" : "Make a backup"} busy={running || action.busy} onClick={make} />
      </div>
      {server.backups.length > 0 && <Files files={server.backups} />}
    </section>
  );
}

const Schedule = ({ of }: { of: OperatorServer["backup_schedule"] }): VNode =>
  of === null ? (
    <>
      There are no automatic backups. To schedule them, set <code>every_hours</code> in <code>[backups]</code> of the
      configuration.
    </>
  ) : (
    <>
      The server makes one every {interval(of.every_ms)} and keeps the last {count(of.keep)}.
    </>
  );

const Files = ({ files }: { files: readonly BackupFile[] }): VNode => (
  <Table caption="Backups in the folder, newest first" columns={["File", "Made", ...figures("Size")]}>
    {files.map(({ file, bytes: size, made_at: madeAt }) => (
      <tr key={file}>
        <td class="break">
          <code>{file}</code>
        </td>
        <td class="nowrap quiet">
          <Time at={madeAt} shown={moment} />
        </td>
        <td class="number nowrap">{bytes(size)}</td>
      </tr>
    ))}
  </Table>
);

const looks = {
  running: ["", "Running"],
  done: ["good", "Done, and every page checked"],
  failed: ["bad", "Failed"],
} as const;

function BackupOutcome({ of }: { of: BackupResult }): VNode {
  const [look, words] = looks[of.state];
  return (
    <div class="stack">
      <dl class="facts">
        <Fact name="Last backup" value={<span class={`badge ${look}`}>{words}</span>} />
        <Fact name="File" class="break" value={<code>{of.file}</code>} />
        <Fact name="Started" title={utc(of.started_at)} value={ago(of.started_at)} />
        {of.state === "done" && (
          <>
            <Fact name="Size" class="number" value={bytes(of.bytes)} />
            <Fact name="Took" class="number" value={`${count(of.duration_ms)} ms`} />
          </>
        )}
      </dl>
      {of.state === "failed" && <pre class="message">{of.message}</pre>}
    </div>
  );
}
