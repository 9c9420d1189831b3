// All batches of a data folder, or of a folder that several gateways share. Each is a folder of its own:
//
//   ACCOUNT/BATCH/batch.json    what is known of it, written beside its place and renamed
//                 requests      a body that it came with, until its requests are read
//                 input.jsonl   its requests: a link to the account's file, unless they came with it
//                 log           what became of its lines (batch-log.ts), until it has ended
//                 cancel        whoever runs it cancels it
//                 results.jsonl of Anthropic's form
//   open/BATCH                  holds the account's number: it has not ended
//
// Of several gateways the one that has its lease runs it. Another takes it over when that has passed.
import { copyFile, link, mkdir, open, readdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { refuse } from "../core/refusals.ts";
import { mintRequestId } from "../core/request-id.ts";
import { dayMs, hourMs } from "../core/units.ts";
import { startWorker, WorkerClient } from "../core/workers.ts";
import type { AccountId, Ms, Refusal } from "../core/types.ts";
import { type Batch, type BatchForm, hasEnded, noSums } from "./batch.ts";
import { BatchRun, type BatchRunParts } from "./batch-run.ts";
import type { LinesCall } from "./lines-worker.ts";

const lookMs = 2_000;
const leaseMs = 30_000;
/** So long after its lease was renewed a gateway still believes that it has it. */
const leaseTrustMs = 20_000;
/** Of all, and of one account, whose oldest run first. One that waits gives its place to another. */
const runningMax = 16;
const accountRunningMax = 4;
const openAccountMax = 64;
/** Of requests that come with a batch, as Anthropic has it. */
const inlineBytesMax = 256 * 1024 * 1024;
/** A batch is forgotten so long after it ended. */
export const keepMs = 30 * dayMs;
/** Before one that failed for a reason of the disk or the database is taken up again. */
const againMs = 10_000;
/** Before one that gave its place up is. */
const waitedAgainMs = 60_000;

const prefixes: Record<BatchForm, string> = { openai: "batch_", anthropic: "msgbatch_" };

export type BatchesOptions = Omit<BatchRunParts, "worker" | "isOurs" | "isShared" | "save"> &
  Readonly<{
    folder: string;
    /** Takes or keeps the lease of a batch for so long; absent: there is one gateway. */
    lease?: (name: string, forMs: Ms) => Promise<boolean>;
  }>;

export type NewBatch = Pick<
  Batch,
  "form" | "account" | "keyHash" | "address" | "endpoint" | "inputFileId" | "metadata" | "outputKeepMs"
> &
  Readonly<{ windowMs: Ms }>;

export type BatchPage = Readonly<{ limit: number; after?: string | undefined; before?: string | undefined }>;

type Running = Readonly<{ run: BatchRun; ended: Promise<void> }> & { leasedAt: Ms };

export class Batches {
  readonly #options: BatchesOptions;
  readonly #worker: WorkerClient<LinesCall>;
  readonly #running = new Map<string, Running>();
  readonly #again = new Map<string, Ms>();
  readonly #looks: Timer;
  #looking: Promise<void> | null = null;
  #saved: Promise<unknown> = Promise.resolve();
  /** Something came up while it looked. */
  #mustLook = false;
  #sweptAt: Ms = 0;
  #isClosed = false;

  constructor(options: BatchesOptions) {
    this.#options = options;
    this.#worker = new WorkerClient<LinesCall>({
      start: () => startWorker("batches/lines-worker.ts"),
      close: { order: "close" },
      idleMs: 2 * 60_000,
    });
    this.#looks = setInterval(() => this.look(), lookMs);
    this.look();
  }

  /** Lines that hold something of the books or the nodes. */
  get underWay(): number {
    return [...this.#running.values()].reduce((sum, { run }) => sum + run.underWay, 0);
  }

  // ---------------------------------------------------------------- what is asked

  /** `requests`: the body that comes with it. */
  async create({ windowMs, ...made }: NewBatch, requests: AsyncIterable<Uint8Array> | null): Promise<Batch | Refusal> {
    const { form, account } = made;
    const { clock } = this.#options.gateway;
    if (!this.#options.files.hasRoom()) return refuse("storage_full");
    const createdAt = clock.wall();
    const id = prefixes[form] + mintRequestId(createdAt).slice("req_".length);
    const batch: Batch = {
      ...made,
      id,
      createdAt,
      expiresAt: createdAt + windowMs,
      state: "validating",
      end: null,
      errors: [],
      total: 0,
      model: null,
      sums: { ...noSums },
      startedAt: null,
      cancellingAt: null,
      finalizingAt: null,
      endedAt: null,
      outputFileId: null,
      errorFileId: null,
      unrun: 0,
      waits: null,
    };
    const folder = this.#folderOf(account, id);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const path = join(folder, "input.jsonl");
    try {
      const wrong = requests === null ? await this.#link(batch, path) : await this.#writeInline(batch, requests, path);
      // One after the other: of many at once no more begin than may.
      const refusal = wrong ?? (await this.#inTurn(() => this.#begin(batch)));
      if (refusal !== null) await rm(folder, { recursive: true });
      return refusal ?? batch;
    } catch (thrown) {
      await rm(folder, { recursive: true, force: true });
      throw thrown;
    }
  }

  /** The file may be deleted, or expire, before all lines have run: its content stays as long as the batch needs it. */
  async #link({ account, inputFileId }: Batch, path: string): Promise<Refusal | null> {
    const { files } = this.#options;
    const file = await files.get(account, inputFileId!);
    const from = file === null ? null : files.read(file).name!;
    if (from === null || !(await Bun.file(from).exists())) {
      return refuse("not_found", {
        reason: `input_file_id: the content of '${inputFileId}' is not in the folder of files`,
      });
    }
    await link(from, path).catch(() => copyFile(from, path)); // some shared folders know no links
    return null;
  }

  async #writeInline(batch: Batch, body: AsyncIterable<Uint8Array>, path: string): Promise<Refusal | null> {
    const from = join(this.#folderOf(batch.account, batch.id), "requests");
    const refusal = await received(body, from).catch((error: unknown) => {
      const isFull = ["ENOSPC", "EDQUOT"].includes(String((error as { code?: unknown }).code));
      return isFull ? refuse("storage_full") : refuse("unreadable", { reason: "The request body ended early" });
    });
    if (refusal !== null) return refusal;
    const wrong = await this.#worker.call<string | number>({ order: "inline", from, endpoint: batch.endpoint, path });
    if (typeof wrong === "string") return refuse("malformed", { reason: wrong });
    batch.total = wrong;
    await rm(from);
    await flushed(path);
    return null;
  }

  async #begin(batch: Batch): Promise<Refusal | null> {
    const open = new Set(await readdir(this.#openFolder).catch((): string[] => []));
    const own = (await readdir(join(this.#options.folder, String(batch.account)))).filter((id) => open.has(id));
    if (own.length >= openAccountMax) {
      return refuse("malformed", { reason: `An account may have ${openAccountMax} batches that have not ended` });
    }
    const { accountBytesMax } = this.#options.files;
    let bytes = 0;
    for (const id of [...own, batch.id]) bytes += Bun.file(join(this.#folderOf(batch.account, id), "input.jsonl")).size;
    if (bytes > accountBytesMax) {
      const reason = `The inputs of an account's batches that have not ended may have ${accountBytesMax} bytes together`;
      return refuse("file_too_large", { reason });
    }
    await this.#write(batch, true);
    await this.#markOpen(batch);
    this.look();
    return null;
  }

  /** As it is now. */
  async get(account: AccountId, id: string): Promise<Batch | null> {
    const running = this.#running.get(id);
    if (running !== undefined && running.run.batch.account === account) return running.run.batch;
    if (!/^(?:msg)?batch_[0-9A-Za-z]{24}$/.test(id)) return null;
    const file = this.#fileOf({ account, id });
    if (!(await file.exists())) return null;
    const batch = (await file.json()) as Batch;
    if (!hasEnded(batch) && batch.cancellingAt === null && (await this.#isCancelled(batch))) {
      return { ...batch, state: "cancelling", cancellingAt: this.#options.gateway.clock.wall() };
    }
    return batch;
  }

  /** Newest first. */
  async list(account: AccountId, form: BatchForm | null, { limit, after, before }: BatchPage): Promise<Batch[]> {
    const all = await readdir(join(this.#options.folder, String(account))).catch((): string[] => []);
    const stemOf = (id: string): string => id.slice(id.indexOf("_") + 1);
    const ids = all
      .filter((id) => form === null || id.startsWith(prefixes[form]))
      .filter((id) => after === undefined || stemOf(id) < stemOf(after))
      .filter((id) => before === undefined || stemOf(id) > stemOf(before))
      .sort((one, other) => (stemOf(one) < stemOf(other) ? 1 : -1));
    const page = before === undefined ? ids.slice(0, limit) : ids.slice(-limit);
    const batches = await Promise.all(page.map((id) => this.get(account, id).catch(() => null))); // a damaged one hides no other
    return batches.filter((batch) => batch !== null);
  }

  /** Whosever it is. */
  async find(id: string): Promise<Batch | null> {
    for (const account of await this.#accounts()) {
      const batch = await this.get(account, id);
      if (batch !== null) return batch;
    }
    return null;
  }

  /** Of an account, or of all. */
  async newest(account: AccountId | null, limit: number): Promise<Batch[]> {
    const accounts = account === null ? await this.#accounts() : [account];
    const lists = await Promise.all(accounts.map((each) => this.list(each, null, { limit })));
    return lists
      .flat()
      .sort((one, other) => other.createdAt - one.createdAt)
      .slice(0, limit);
  }

  async #accounts(): Promise<AccountId[]> {
    const names = await readdir(this.#options.folder).catch((): string[] => []);
    return names.filter((name) => /^\d+$/.test(name)).map(Number);
  }

  async cancel(account: AccountId, id: string): Promise<Batch | null> {
    const batch = await this.get(account, id);
    if (batch === null || hasEnded(batch)) return batch;
    await writeFile(join(this.#folderOf(account, id), "cancel"), "", { flush: true });
    this.#running.get(id)?.run.end("cancelled");
    this.#again.delete(id);
    this.look();
    return this.get(account, id);
  }

  /** Of one that has ended. Its run may still write its state and remove what it no longer needs. */
  async remove(account: AccountId, id: string): Promise<void> {
    await this.#running.get(id)?.ended;
    await rm(this.#folderOf(account, id), { recursive: true, force: true });
  }

  resultsOf({ account, id }: Batch): Bun.BunFile {
    return Bun.file(join(this.#folderOf(account, id), "results.jsonl"));
  }

  // ---------------------------------------------------------------- which run

  /** Looks for what there is to do; called after whatever may bring some. */
  look(): void {
    this.#mustLook = true;
    if (this.#isClosed || this.#looking !== null) return;
    this.#mustLook = false;
    this.#looking = this.#look()
      .catch((error: unknown) => {
        this.#options.gateway.log("error", "batches could not be looked at", { error: String(error) });
      })
      .finally(() => {
        this.#looking = null;
        if (this.#mustLook) this.look();
      });
  }

  async #look(): Promise<void> {
    const { gateway, lease } = this.#options;
    const now = gateway.clock.wall();
    for (const running of this.#running.values()) {
      const { run } = running;
      const { batch } = run;
      // Another gateway may have had it meanwhile: then what this one knows of it is old. Or its account was erased.
      if (!this.#isLeased(running) || !(await this.#fileOf(batch).exists())) {
        run.close();
        continue;
      }
      if (batch.end === null && now >= batch.expiresAt) run.end("expired");
      else if (batch.end === null && (await this.#isCancelled(batch))) run.end("cancelled");
      if (run.takeChanged() && !hasEnded(batch)) {
        await this.#save(batch, false).catch((error: unknown) => {
          gateway.log("error", "a batch's progress could not be written", { batch: batch.id, error: String(error) });
        });
      }
      const at = gateway.clock.monotonic();
      if (lease === undefined || (await lease(`batch ${batch.id}`, leaseMs).catch(() => false))) running.leasedAt = at;
    }
    const open = (await readdir(this.#openFolder).catch((): string[] => [])).sort();
    for (const id of open) {
      if (this.#isClosed) break;
      if (this.#running.has(id) || (this.#again.get(id) ?? 0) > gateway.clock.monotonic()) continue;
      await this.#take(id).catch((error: unknown) => this.#stopped(id, error));
    }
    if (now - this.#sweptAt < hourMs) return;
    this.#sweptAt = now;
    await this.#sweep(now);
  }

  async #take(id: string): Promise<void> {
    const { lease, gateway } = this.#options;
    const marker = join(this.#openFolder, id);
    const account = Number(
      await Bun.file(marker)
        .text()
        .catch(() => Number.NaN),
    );
    if (!(await this.#isCancelled({ account, id })) && !(await this.#makeRoom(account))) return;
    const at = gateway.clock.monotonic();
    if (lease !== undefined && !(await lease(`batch ${id}`, leaseMs))) return;
    const batch = Number.isNaN(account) ? null : await this.get(account, id);
    if (batch === null || hasEnded(batch)) return rm(marker, { force: true });
    const run = new BatchRun(batch, this.#folderOf(account, id), {
      ...this.#options,
      worker: this.#worker,
      isShared: lease !== undefined,
      isOurs: () => this.#isLeased(running),
      save: (batch, durably) => this.#save(batch, durably),
    });
    const ended = run.run().then(
      async () => {
        if (!hasEnded(batch)) return;
        await rm(marker, { force: true });
        const { id, state, sums, total } = batch;
        gateway.log("info", "a batch has ended", { batch: id, state, lines: total, ...sums });
      },
      async (error: unknown) => {
        if (await this.#fileOf(batch).exists()) this.#stopped(id, error);
        else await rm(marker, { force: true }); // its account was erased
      },
    );
    const running: Running = { run, leasedAt: at, ended: ended.finally(() => this.#running.delete(id)) };
    this.#running.set(id, running);
    if (batch.cancellingAt !== null) run.end("cancelled");
    else if (gateway.clock.wall() >= batch.expiresAt) run.end("expired");
  }

  /** Whether one more of the account may run, maybe in the place of one that waits. */
  async #makeRoom(account: AccountId): Promise<boolean> {
    const running = [...this.#running.values()];
    const own = running.filter(({ run }) => run.batch.account === account);
    const full = own.length >= accountRunningMax ? own : running.length >= runningMax ? running : null;
    if (full === null) return true;
    const waiting = full.find(({ run }) => run.batch.waits !== null && run.underWay === 0);
    if (waiting === undefined) return false;
    const { run, ended } = waiting;
    await this.#save(run.batch, false);
    if ((await this.#isCancelled(run.batch)) || run.batch.end !== null) return false; // it ends by itself
    this.#again.set(run.batch.id, this.#options.gateway.clock.monotonic() + waitedAgainMs);
    run.close();
    await ended;
    return true;
  }

  #stopped(id: string, error: unknown): void {
    const { clock, log } = this.#options.gateway;
    this.#again.set(id, clock.monotonic() + againMs);
    log("error", "a batch stopped and is taken up again", { batch: id, error: String(error) });
  }

  #isLeased({ leasedAt }: Pick<Running, "leasedAt">): boolean {
    const { lease, gateway } = this.#options;
    return lease === undefined || gateway.clock.monotonic() - leasedAt <= leaseTrustMs;
  }

  #isCancelled({ account, id }: Pick<Batch, "account" | "id">): Promise<boolean> {
    return Bun.file(join(this.#folderOf(account, id), "cancel")).exists();
  }

  /** What ended long ago, or is left of an account that was erased; and what a kill cut off while it was made. */
  async #sweep(now: Ms): Promise<void> {
    for (const account of await this.#accounts()) {
      for (const id of await readdir(join(this.#options.folder, String(account)))) {
        const batch = await this.get(account, id).catch(() => undefined);
        if (batch === undefined) continue; // damaged: its answers may be saved by hand
        const keptSince =
          batch === null ? await this.#writtenAt(account, id) : (batch.endedAt ?? batch.expiresAt) + keepMs - hourMs;
        if (now - keptSince > hourMs) await this.remove(account, id);
        else if (batch !== null && !hasEnded(batch) && !this.#running.has(id)) await this.#markOpen(batch);
      }
    }
    this.#mustLook = true;
  }

  async #writtenAt(account: AccountId, id: string): Promise<Ms> {
    const written = await stat(this.#folderOf(account, id)).catch(() => null);
    return written?.mtimeMs ?? Number.POSITIVE_INFINITY;
  }

  async #markOpen({ account, id }: Batch): Promise<void> {
    await mkdir(this.#openFolder, { recursive: true, mode: 0o700 });
    await writeFile(join(this.#openFolder, id), String(account), { mode: 0o600, flush: true });
    await flushed(this.#openFolder);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#looks);
    await this.#looking;
    const running = [...this.#running.values()];
    for (const { run } of running) run.close();
    await Promise.all(running.map(({ ended }) => ended));
    for (const { run } of running) if (!hasEnded(run.batch)) await this.#save(run.batch, false).catch(() => {});
    await this.#worker.close();
  }

  get #openFolder(): string {
    return join(this.#options.folder, "open");
  }

  #fileOf({ account, id }: Pick<Batch, "account" | "id">): Bun.BunFile {
    return Bun.file(join(this.#folderOf(account, id), "batch.json"));
  }

  #folderOf(account: AccountId, id: string): string {
    return join(this.#options.folder, String(account), id);
  }

  /** One after the other, each as the batch is then. */
  #save(batch: Batch, durably: boolean): Promise<void> {
    return this.#inTurn(() => this.#write(batch, durably));
  }

  #inTurn<Result>(act: () => Promise<Result>): Promise<Result> {
    const done = this.#saved.then(act);
    this.#saved = done.catch(() => {});
    return done;
  }

  async #write(batch: Batch, durably: boolean): Promise<void> {
    const folder = this.#folderOf(batch.account, batch.id);
    const path = join(folder, "batch.json");
    await writeFile(`${path}.new`, JSON.stringify(batch), { mode: 0o600, flush: true }); // else a power cut may leave it empty
    const running = this.#running.get(batch.id);
    if (running !== undefined && !this.#isLeased(running)) throw new Error("another gateway runs the batch now");
    await rename(`${path}.new`, path);
    if (durably) await flushed(folder);
  }
}

async function flushed(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function received(content: AsyncIterable<Uint8Array>, path: string): Promise<Refusal | null> {
  await using body = await open(path, "wx", 0o600);
  let bytes = 0;
  for await (const piece of content) {
    bytes += piece.length;
    if (bytes > inlineBytesMax)
      return refuse("file_too_large", { reason: `The batch may have ${inlineBytesMax} bytes` });
    await body.appendFile(piece);
  }
  return null;
}
