// The operators' page about the server itself: its configuration and its backups.
import type { AuditAction } from "../../account/records.ts";
import { theServer } from "../../account/audit.ts";
import type { Ms } from "../../core/types.ts";
import type { BackupResult, OperatorServer, ReloadResult, WebhookTest } from "../api/server.ts";
import { audit, type OperatorCall } from "../audit-entry.ts";
import { timeOf } from "../numbers.ts";
import type { ConsoleParts } from "../parts.ts";
import { fail, type Route, route } from "./route.ts";
import { reloadDetail, type ReloadOutcome } from "../../office/reloaded.ts";
import type { BackupOutcome } from "../server-care.ts";

/** As long as other details, which people write. */
const detailMaxLength = 500;
const backupsShownMax = 100;

export function serverCareRoutes({ configuration, backups, webhooks, office, clock, log }: ConsoleParts): Route[] {
  let reload: ReloadResult | null = null;
  let backup: BackupResult | null = null;

  const show = (): OperatorServer => ({
    gateway: configuration.gateway,
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
      const outcome = await configuration.reload();
      reload = reloadResult(outcome, clock.wall());
      await note(call, "server.reload", reloadDetail(outcome));
      return show();
    }),

    route("POST /operator/webhooks/test", async ({ body: { name } }) => {
      const tested = await webhooks.test(name);
      if ("refused" in tested) return fail("not_found", `${tested.refused}.`);
      return { name, problem: tested.problem } satisfies WebhookTest;
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
    await note(call, "server.backup", detail);
  }

  function note(call: OperatorCall, action: AuditAction, detail: string): Promise<void> {
    return office.change(async (unit) => audit(unit, call, action, theServer, detail.slice(0, detailMaxLength)));
  }
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
