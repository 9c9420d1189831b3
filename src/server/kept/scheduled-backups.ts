// Backups that the server makes on a schedule, and removes when newer ones replace them. A backup's name says when it
// was made, so a restart neither repeats nor forgets one; other files in the folder are left alone.
import { mkdirSync, readdirSync, rmSync, statfsSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../core/clock.ts";
import type { BackupSchedule } from "../../config/config.ts";
import { diskReserveBytes } from "../../core/limits.ts";
import { hourMs, bytesText } from "../../core/units.ts";
import type { Log } from "../../core/log.ts";
import type { Ms } from "../../core/types.ts";

/** The longest wait before checking whether one is due: sleeping machines and adjusted clocks shift that. */
const scheduledBackupLookMs = hourMs;

export type ScheduledBackupsParts = Readonly<{
  folder: string;
  /** About what a copy takes; what is in the log beside the database, at most 64 MiB, is within the reserve. */
  databaseBytes(): number;
  /** Copies the database to a file that must not exist, and checks the copy. */
  backup(file: string, progress: (line: string) => void): Promise<Readonly<{ bytes: number }>>;
  clock: Clock;
  log: Log;
}>;

export type BackupFailure = Readonly<{ at: Ms; reason: string }>;

export class ScheduledBackups {
  readonly #parts: ScheduledBackupsParts;
  #schedule: BackupSchedule | null = null;
  #timer: Timer | null = null;
  #isMaking = false;
  #lastMadeAt: Ms | null = null;
  #failure: BackupFailure | null = null;

  constructor(parts: ScheduledBackupsParts) {
    this.#parts = parts;
  }

  get schedule(): BackupSchedule | null {
    return this.#schedule;
  }

  /** When the newest backup of a schedule was made; null where there is no schedule or none was made yet. */
  get lastMadeAt(): Ms | null {
    return this.#lastMadeAt;
  }

  /** The last one that failed, since when one was made. */
  get failure(): BackupFailure | null {
    return this.#failure;
  }

  /** From here on; null: none are made, and those that are there stay. */
  follow(schedule: BackupSchedule | null): void {
    this.#schedule = schedule;
    const newest = schedule === null ? undefined : this.#made()[0];
    this.#lastMadeAt = newest === undefined || this.#isOfFuture(newest.at) ? null : newest.at;
    this.#look();
  }

  close(): void {
    this.follow(null);
  }

  /** Makes one if it is due; if not, looks again when it is. */
  #look(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#schedule === null || this.#isMaking) return; // the one that is being made looks again when it is done
    const { everyMs } = this.#schedule;
    const now = this.#parts.clock.wall();
    // One from the future was made before the clock was set back: it says nothing about when the next is due.
    const ageMs = this.#lastMadeAt === null || this.#lastMadeAt > now ? everyMs : now - this.#lastMadeAt;
    if (ageMs < everyMs) this.#lookIn(everyMs - ageMs);
    else void this.#make(now);
  }

  #lookIn(ms: Ms): void {
    this.#timer = setTimeout(() => this.#look(), Math.min(ms, scheduledBackupLookMs));
    this.#timer.unref();
  }

  async #make(now: Ms): Promise<void> {
    const { folder, backup, log } = this.#parts;
    this.#isMaking = true;
    let failed = false;
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      this.#removeCutOff();
      this.#checkRoom();
      const file = join(folder, nameOf(now));
      const { bytes } = await backup(file, () => {}); // no one reads its progress
      this.#lastMadeAt = now;
      this.#failure = null;
      log("info", "backup made", { file, bytes });
    } catch (error) {
      failed = true;
      const reason = error instanceof Error ? error.message : String(error);
      this.#failure = { at: now, reason };
      log("error", "a backup failed", { reason });
    }
    this.#isMaking = false;
    if (this.#schedule === null) return;
    if (failed) return this.#lookIn(this.#schedule.everyMs);
    this.#removeOldest(this.#schedule.keep);
    this.#look();
  }

  #checkRoom(): void {
    const { folder, databaseBytes } = this.#parts;
    const { bavail, bsize } = statfsSync(folder);
    const needed = databaseBytes() + diskReserveBytes;
    if (bavail * bsize >= needed) return;
    throw new Error(`the disk has ${bytesText(bavail * bsize)} free, and a copy may be made with ${bytesText(needed)}`);
  }

  /** What a crash left in the middle of one. */
  #removeCutOff(): void {
    for (const name of readdirSync(this.#parts.folder)) {
      const whole = name.endsWith(".partial") ? name.slice(0, -".partial".length) : null;
      if (whole !== null && timeOf(whole) !== null) rmSync(join(this.#parts.folder, name));
    }
  }

  #removeOldest(keep: number): void {
    const { folder, log } = this.#parts;
    for (const { name } of this.#made().slice(keep)) {
      const file = join(folder, name);
      try {
        rmSync(file);
        log("info", "old backup removed", { file });
      } catch (error) {
        log("error", "an old backup could not be removed", { file, reason: (error as Error).message });
      }
    }
  }

  #isOfFuture(at: Ms): boolean {
    return at > this.#parts.clock.wall();
  }

  /**
   * Those that are there, the newest first, and last those from the future, which else would stay forever in the place of
   * each that is made; none where the folder cannot be read, which the next backup tells of.
   */
  #made(): Readonly<{ name: string; at: Ms }>[] {
    let names: readonly string[];
    try {
      names = readdirSync(this.#parts.folder);
    } catch {
      return [];
    }
    const made = names.flatMap((name) => {
      const at = timeOf(name);
      return at === null ? [] : { name, at };
    });
    const rank = ({ at }: { at: Ms }): number => Number(this.#isOfFuture(at));
    return made.toSorted((one, other) => rank(one) - rank(other) || other.at - one.at);
  }
}

/** "scheduled-2026-11-21T07-45-00Z.db": a time without colons, which some systems take for something else. */
const nameOf = (at: Ms): string => `scheduled-${new Date(at).toISOString().slice(0, 19).replaceAll(":", "-")}Z.db`;

/** When the backup of that name was made; null if it is not ours. */
function timeOf(name: string): Ms | null {
  const match = /^scheduled-(\d{4}-\d\d-\d\d)T(\d\d)-(\d\d)-(\d\d)Z\.db$/.exec(name);
  if (match === null) return null;
  const at = Date.parse(`${match[1]}T${match[2]}:${match[3]}:${match[4]}Z`);
  return Number.isNaN(at) ? null : at;
}
