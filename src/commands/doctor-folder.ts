// The part of `tollgate doctor` about the data folder: its disk, flush times, and the database in it.
import { accessSync, constants, existsSync, readdirSync, statfsSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { PlanCount } from "../account/records.ts";
import { diskReserveBytes } from "../core/limits.ts";
import { type DatabaseFacts, databaseFacts } from "../store/database-facts.ts";
import type { RecentInput } from "../store/recent-input.ts";
import { databaseName, missingLedger } from "../store/folder/data-folder.ts";
import { whyMoved } from "../store/folder/moved-folder.ts";
import { flushTimesOf, flushWarning, measureFlushTime } from "../store/folder/flush-time.ts";
import type { Ms } from "../core/types.ts";
import { socketFile } from "../server/control-socket.ts";
import { checkFolderRights } from "../server/process/folder-rights.ts";
import { type Finding, ok, problem, warning } from "./finding.ts";

/** File systems whose locks or flushes may not hold (statfs numbers, Linux). */
const network: ReadonlyMap<number, string> = new Map([
  [0x6969, "NFS"],
  [0x517b, "SMB"],
  [0xff534d42, "CIFS"],
  [0xfe534d42, "SMB2"],
  [0x01021997, "9p"],
  [0x65735546, "FUSE"],
]);
const tmpfs = 0x01021994;
const writeByOthers = 0o022;
const anythingByOthers = 0o077;
const databaseEndings = [".db", ".db-wal", ".db-shm"];
const freePartMin = 0.05;
/** A log that no checkpoint shrinks: a process reads the database all the time. */
const logMaxBytes = 256 * 1024 ** 2;

export type FolderLook = Readonly<{
  findings: readonly Finding[];
  newestLineAt: Ms | null;
  byPlan: readonly PlanCount[];
  recentInput: readonly RecentInput[];
}>;

export const nothingKnown = { newestLineAt: null, byPlan: [], recentInput: [] };

/** Takes a few seconds, which it reports to `progress`. */
export async function folderFindings(folder: string, progress: (line: string) => void): Promise<FolderLook> {
  if (!mayLookInto(folder)) return { findings: [], ...nothingKnown }; // the check of the server has reported it
  if (!existsSync(folder)) return { findings: futureFindings(folder), ...nothingKnown };
  progress("flushing the disk 200 times, which takes a few seconds");
  const database = databaseLook(join(folder, databaseName));
  return {
    ...database,
    findings: [folderFinding(folder), spaceFinding(folder), await flushFinding(folder), ...database.findings],
  };
}

function mayLookInto(folder: string): boolean {
  try {
    checkFolderRights(folder, socketFile(folder));
    return true;
  } catch {
    return false;
  }
}

/** For a folder that does not exist yet: the one above it decides. */
function futureFindings(folder: string): readonly Finding[] {
  let above = dirname(resolve(folder));
  while (!existsSync(above)) above = dirname(above);
  const disk = diskFinding(folder, above);
  if (disk !== null) return [disk];
  try {
    accessSync(above, constants.W_OK | constants.X_OK);
  } catch {
    return [problem("data folder", `${folder} does not exist yet, and this user may not create it in ${above}`)];
  }
  return [ok("data folder", `${folder} does not exist yet; serve creates it`), spaceFinding(above)];
}

function folderFinding(folder: string): Finding {
  const disk = diskFinding(folder, folder);
  if (disk !== null) return disk;
  if ((statSync(folder).mode & writeByOthers) !== 0)
    return warning("data folder", `others may change what is in ${folder}: chmod 700`);
  // Readable file names do not matter: a cloned repository's folder is open, too.
  const open = readdirSync(folder).find(
    (name) =>
      databaseEndings.some((ending) => name.endsWith(ending)) &&
      (statSync(join(folder, name)).mode & anythingByOthers) !== 0,
  );
  if (open !== undefined) return warning("data folder", `others may look into ${join(folder, open)}: chmod 600`);
  return ok("data folder", folder);
}

/** What is wrong with the file system of `place`, where `folder` is or will be; or null. */
function diskFinding(folder: string, place: string): Finding | null {
  const what = "data folder";
  const { type } = statfsSync(place);
  const kind = network.get(type);
  if (kind !== undefined) {
    return problem(
      what,
      `${folder} is on a ${kind} file system: a second server could start on it, and flushes may lie`,
    );
  }
  if (type === tmpfs) return problem(what, `${folder} is in memory: a restart of the machine loses every balance`);
  return null;
}

function spaceFinding(folder: string): Finding {
  const what = "free disk";
  const { bavail, bsize, blocks } = statfsSync(folder);
  const bytes = bavail * bsize;
  const free = `${size(bytes)} free of ${size(blocks * bsize)}`;
  if (bytes < diskReserveBytes) {
    return problem(what, `${free}: responses are not stored any more, and a full disk refuses every request`);
  }
  return bavail / blocks < freePartMin ? warning(what, free) : ok(what, free);
}

async function flushFinding(folder: string): Promise<Finding> {
  const what = "disk flushes";
  try {
    const flushedMs = await measureFlushTime(folder);
    const { medianMs, slowestPercentMs } = flushTimesOf(flushedMs);
    const times = `half within ${medianMs.toFixed(2)} ms, 99 in 100 within ${slowestPercentMs.toFixed(2)} ms`;
    const wrong = flushWarning(flushedMs);
    return wrong === null ? ok(what, times) : warning(what, `${wrong} (${times})`);
  } catch (error) {
    return problem(what, `cannot be measured: ${(error as Error).message}`);
  }
}

function databaseLook(file: string): FolderLook {
  const what = "database";
  const folder = dirname(file);
  try {
    const missing = whyMoved(folder) ?? missingLedger(folder);
    if (missing !== null) return { findings: [problem(what, missing)], ...nothingKnown };
    if (!existsSync(file)) return { findings: [ok(what, "not made yet")], ...nothingKnown };
    const facts = databaseFacts(file);
    const { newestLineAt, byPlan, recentInput } = facts;
    return { findings: [databaseFinding(facts)], newestLineAt, byPlan, recentInput };
  } catch (error) {
    return { findings: [problem(what, `${file} cannot be read: ${(error as Error).message}`)], ...nothingKnown };
  }
}

function databaseFinding(facts: DatabaseFacts): Finding {
  const what = "database";
  const { sqliteVersion, journalMode, version, programVersion, bytes, logBytes } = facts;
  const state = `SQLite ${sqliteVersion}, journal mode ${journalMode}, version ${version}, ${size(bytes)}`;
  if (version > programVersion)
    return problem(what, `${state}: made by a newer tollgate than this one (${programVersion})`);
  // A restore leaves it so on purpose.
  if (version > 0 && journalMode !== "wal") return ok(what, `${state}, which becomes wal at the next start`);
  if (logBytes > logMaxBytes) {
    return warning(what, `${state}, and ${size(logBytes)} of log: a process has been reading it for a long time`);
  }
  return ok(what, version < programVersion ? `${state}, becomes version ${programVersion} at the next start` : state);
}

const size = (bytes: number): string =>
  bytes < 1024 ** 3 ? `${(bytes / 1024 ** 2).toFixed(1)} MiB` : `${(bytes / 1024 ** 3).toFixed(1)} GiB`;
