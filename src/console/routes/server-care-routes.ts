// The server itself, for operators: its configuration, backups and webhooks.
import { CommandError, isExpected } from "../../core/expected-error.ts";
import { auditDetailMaxLength, theServer } from "../../account/audit.ts";
import type { Ms } from "../../core/types.ts";
import type { BackupResult, OperatorServer, ReloadResult } from "../api/server.ts";
import { ask, failedAs } from "../ask.ts";
import { audit, type OperatorCall } from "../audit-entry.ts";
import { timeOf } from "../numbers.ts";
import type { ConsoleParts } from "../parts.ts";
import { fail, type Failure, isFailure, type Route, route } from "./route.ts";
import { edit, show as showConfig, undo } from "../../office/verbs/config.ts";
import { ConfigIsOther, ConfigIsWrong } from "../../office/config-editing.ts";
import { reload as reloadVerb, testWebhook } from "../../office/verbs/server.ts";
import type { ReloadOutcome } from "../../office/reloaded.ts";
import type { BackupOutcome } from "../server-care.ts";

const backupsShownMax = 100;

export function serverCareRoutes(parts: ConsoleParts): Route[] {
  const { configuration, backups, webhooks, office, clock, log } = parts;
  // The monotonic clock counts from the start of the process.
  const startedAt = timeOf(clock.wall() - clock.monotonic());
  let reload: ReloadResult | null = null;
  let backup: BackupResult | null = null;

  const show = (): OperatorServer => ({
    gateway: configuration.gateway,
    started_at: startedAt,
    config_file: configuration.file,
    config_loaded_at: timeOf(configuration.loadedAt),
    reload,
    backup_folder: backups.folder,
    disk_free_bytes: backups.freeBytes(),
    backup,
    backup_schedule: backups.schedule && { every_ms: backups.schedule.everyMs, keep: backups.schedule.keep },
    backups: backups.list(backupsShownMax).map(({ name, bytes, madeAt }) => {
      return { file: name, bytes, made_at: timeOf(madeAt) };
    }),
    webhooks: [...webhooks.list()],
  });

  return [
    route("GET /operator/server", show),

    route("POST /operator/server/reload", async (call) => {
      const outcome = await ask(parts, "operator", call, reloadVerb, {}).catch((thrown: unknown) => {
        if (thrown instanceof CommandError) return { refused: thrown.message };
        throw thrown;
      });
      reload = reloadResult(outcome, clock.wall());
      return show();
    }),

    route("GET /operator/config", (call) => ask(parts, "operator", call, showConfig, {})),
    route("POST /operator/config", (call) => ask(parts, "operator", call, edit, call.body).catch(notEdited)),
    route("POST /operator/config/undo", (call) => ask(parts, "operator", call, undo, call.body).catch(notEdited)),

    route("POST /operator/webhooks/test", async (call) => {
      const tested = await ask(parts, "operator", call, testWebhook, call.body).catch(failedAs("not_found"));
      return isFailure(tested) ? tested : { name: tested.name, problem: tested.problem };
    }),

    // Answers before the backup is done, because that may take longer than a connection may be silent; the page asks again.
    route("POST /operator/server/backup", (call) => {
      if (backups.folder === null) return fail("conflict", "The ledger is in PostgreSQL: pg_dump backs it up.");
      if (backup?.state === "running") return fail("conflict", "A backup is already running.");
      const now = clock.wall();
      const file = `tollgate-${timeOf(now).slice(0, 19).replaceAll(":", "-")}.db`;
      backup = { state: "running", started_at: timeOf(now), file, bytes: 0, duration_ms: 0, message: "" };
      makeBackup(call, file, backup).catch((error: unknown) => {
        log("error", "a backup from the console is missing in the audit log", { file, error: String(error) });
      });
      return show();
    }),
  ];

  async function makeBackup(call: OperatorCall, file: string, started: BackupResult): Promise<void> {
    const startedAt = clock.monotonic();
    const outcome = await backups.make(file);
    backup = backupResult(outcome, started, clock.monotonic() - startedAt);
    const detail = "failed" in outcome ? `failed: ${outcome.failed}` : `${file}: ${outcome.bytes} bytes, checked`;
    await office.change(async (unit) =>
      audit(unit, call, "server.backup", theServer, detail.slice(0, auditDetailMaxLength)),
    );
  }
}

function notEdited(thrown: unknown): Failure {
  if (!isExpected(thrown)) throw thrown;
  const { message } = thrown as Error;
  if (thrown instanceof ConfigIsOther) return fail("conflict", `${message}.`);
  const faults =
    thrown instanceof ConfigIsWrong ? thrown.places.map(({ path, problem }) => ({ path: [...path], problem })) : [];
  return { ...fail("invalid_request", `${message}.`), ...(faults.length === 0 ? {} : { faults }) };
}

function reloadResult(outcome: ReloadOutcome, now: Ms): ReloadResult {
  const time = timeOf(now);
  if ("refused" in outcome) return { time, refused: outcome.refused, applied: [], needs_restart: [] };
  return { time, refused: null, applied: [...outcome.applied], needs_restart: [...outcome.needsRestart] };
}

function backupResult(outcome: BackupOutcome, started: BackupResult, durationMs: number): BackupResult {
  const duration_ms = Math.round(durationMs);
  return "failed" in outcome
    ? { ...started, state: "failed", duration_ms, message: outcome.failed }
    : { ...started, state: "done", duration_ms, bytes: outcome.bytes };
}
