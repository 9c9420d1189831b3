// Puts a running server together, in five phases. Each takes what the earlier ones made as one value and gives its own;
// nothing refers to what is made later.
//
//   settings   configuration, catalog, log, metrics, traces; its port is found
//   books      the data folder's lock, ledger, stored responses, sealing key
//   work       nodes and their programs, the line for them, tokens, large bodies, tools
//   gateway    threads, reload, backups, what commands do
//   doors      console, control socket, HTTP, schedules
//
// What a phase opens it leaves on one stack, which closes in the reverse order: at the end, or at once where a phase fails.
import { billedTokens, costUsd, ratesOf } from "../account/money/price.ts";
import { priorityOf } from "../core/priority.ts";
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { serverEntry, theServer } from "../account/audit.ts";
import { LargeBodies } from "../bodies/large-bodies.ts";
import {
  type BackupSchedule,
  type Config,
  type ConfigEdit,
  addressesOf,
  type ConfigFlags,
  type Environment,
  isBehindProxy,
  loadConfig,
} from "../config/config.ts";
import { catalogOf, configuredCatalog } from "../config/configured-catalog.ts";
import { lazyConsole } from "../console/lazy-console.ts";
import { LiveCatalog, sampleModelOf, usualSampleModel } from "../core/catalog.ts";
import { systemClock } from "../core/clock.ts";
import { CommandError, isExpected } from "../core/expected-error.ts";
import { type Log, openLog, usualLogFormat } from "../core/log.ts";
import { lastPlan, unconfiguredPlans, unknownModels } from "../core/plans.ts";
import type { Accounting } from "../books/accounting.ts";
import type { FileStore } from "../files/file-store.ts";
import type { Batches } from "../batches/batches.ts";
import type { openBatches as OpenBatches } from "../batches/open-batches.ts";
import type { AnswerKept, Inside } from "../http/kept-routes.ts";
import type { Quotes } from "../http/quote.ts";
import { type Operators, startServer } from "../http/app.ts";
import { holdFreePort } from "../http/free-port.ts";
import type { ManagedSettingsOf } from "../http/machine-routes.ts";
import { Metrics } from "../http/metrics/metrics.ts";
import { together } from "../http/other-threads.ts";
import type { LiveRequests } from "../http/site.ts";
import { saltSeedOf } from "../nodes/prefix-cache.ts";
import { modelsOn } from "../nodes/abilities.ts";
import { NodePool, type NodeState } from "../nodes/queue/pool.ts";
import { type ReloadOutcome, reloadDetail } from "../office/reloaded.ts";
import type { BatchesDesk, Work as OfficeWork } from "../office/work.ts";
import { erasedInWords } from "../store/changes/erasure.ts";
import { backupsName } from "../store/folder/data-folder.ts";
import { roomInWords } from "../store/folder/disk-room.ts";
import type { NodeShares } from "../store/postgres/node-shares.ts";
import type { Share } from "../store/postgres/shares.ts";
import { databaseAndUser } from "../store/postgres/place-of-url.ts";
import type { LedgerState } from "../store/verify/ledger-report.ts";
import { Tracing } from "../telemetry/tracing.ts";
import { FollowedNodes } from "../threads/followed-nodes.ts";
import { TokenCounter } from "../tokens/counter.ts";
import { TokenCounts } from "../tokens/node-count.ts";
import type { PublicFetch } from "../tools/fetch/public-fetch.ts";
import { PublicFetchClient } from "../tools/fetch/public-fetch-client.ts";
import { AnswerChecker } from "../tools/format/answer-checker.ts";
import type { Media } from "../tools/media/media.ts";
import { pdfTextCommand } from "../tools/media/pdf-command.ts";
import type { ServingConsole } from "./console.ts";
import type { ControlParts } from "./control-handler.ts";
import { type Handler, openControlSocket, socketFile } from "./control-socket.ts";
import { countedFetch } from "./counted-tools.ts";
import { checkFolderRights } from "./process/folder-rights.ts";
import { fleetOf } from "./fleet/fleet.ts";
import { cannotListen, listen } from "./process/listening.ts";
import { LiveConfig } from "./live-config.ts";
import { openBooks } from "../books/open-books.ts";
import type { OpenedBooks } from "../books/opened-books.ts";
import { lookForLostResponses } from "./kept/lost-responses.ts";
import { hadModels, missingLines, modelReport, seenNode, understoodNames } from "./fleet/model-report.ts";
import { NodeCare } from "./fleet/node-care.ts";
import type { Alerts } from "./alerts.ts";
import { Mailing } from "./mailing.ts";
import { LazyNotices } from "./lazy-notices.ts";
import { nodeLine, noNodeServes } from "./fleet/node-lines.ts";
import { checkModelFile, findServingNodes } from "./fleet/nodes.ts";
import { OwnedTools } from "./owned-tools.ts";
import { lazyConfigEditor } from "./lazy-config-editor.ts";
import { Reloader } from "./reload.ts";
import { runningOf } from "./running.ts";
import { ScheduledBackups } from "./kept/scheduled-backups.ts";
import { ServedModels } from "./fleet/served-models.ts";
import { sharedNodes } from "./fleet/shared-nodes.ts";
import { ModelHabits } from "../tools/model-habits.ts";

/** How often to check that the control socket and the file of stored responses are still there. */
const folderLookIntervalMs = 1_000;

export type Given = Readonly<{
  flags: ConfigFlags;
  environment: Environment;
  /** Called with each node when it was first checked, which may be before the server listens. */
  onFirstLook(node: NodeState): void;
  /** The disk failed, or a thread died: the process must end at once. What is on disk the next start finds out. */
  onFatal(error: Error): void;
  /** For tests: called at the end of each phase. */
  reached?(phase: "settings" | "books" | "work" | "gateway" | "doors"): void;
}>;

/** A server that answers requests, until it is disposed of: then open requests have the configured time to end. */
export type ComposedServer = AsyncDisposable &
  LiveRequests &
  Pick<Settings & OpenedBooks, "log" | "accounting"> &
  Readonly<{
    url: string;
    threads: number;
    /** How clients on this machine reach it, or all where `base_url` says it. */
    baseUrl: string;
    place: string;
    /** Whose disk must flush; null: the ledger is on no disk of this machine. */
    ledgerFolder: string | null;
    /** Where browsers find the console. */
    consoleUrl: string;
    /** Whether people may sign in with a password. */
    passwordSignIn: boolean;
    /** Which nodes it works with and why, in one line. */
    nodes: string;
    sampleModel(): string;
    /** The id of the last plan that is offered. */
    largestPlan: string;
    /** Which accounts are on plans that are not configured, in words. */
    planNotices(): Promise<readonly string[]>;
    /** Which names of models in plans mean none, and which of a shop's models no node has, in words; nodes were looked at. */
    modelNotices(): readonly string[];
    nodeNames: readonly string[];
    /** How a node is, in one line. */
    nodeLine(node: NodeState): string;
    /** Which names requests may use, in one line. */
    understoodNames(): string;
    /** Its start is over: from here on /readyz sends requests to it. */
    begin(): void;
    /** Has the configuration read again; `by` goes into the audit log. Never rejects. */
    reload(by: string): Promise<void>;
  }>;

/** Throws what keeps it from starting; then nothing of it is left open. */
export async function compose(given: Given): Promise<ComposedServer> {
  const { reached = () => {} } = given;
  await using opened = new AsyncDisposableStack();
  const settings = await readSettings(given, opened);
  reached("settings");
  const books = await openBooks({ ...given, ...settings, onCommit: settings.metrics.countCommit }, opened);
  reached("books");
  const work = await openWork({ ...given, ...settings, ...books }, opened);
  reached("work");
  const gateway = await openGateway({ ...given, ...settings, ...books, ...work }, opened);
  reached("gateway");
  const doors = await openDoors({ ...given, ...settings, ...books, ...work, ...gateway }, opened);
  reached("doors");

  const { config, live, life, log } = settings;
  opened.defer(() => {
    life.now = "stopping";
    log("info", "stopping", {
      openRequests: doors.requests.openRequests,
      graceSeconds: live.values.stopGraceMs / 1000,
    });
  });
  const all = opened.move();
  const seenModels = () => modelReport(settings.catalog, work.served.areOwn, work.pool.states().map(seenNode));
  return {
    url: doors.url,
    threads: config.threads,
    baseUrl: addressesOf(config, settings.port).baseUrl,
    place:
      config.databaseUrl === null
        ? `data in ${config.dataFolder}`
        : `data in ${databaseAndUser(config.databaseUrl)}, what is of this gateway alone in ${config.dataFolder}`,
    ledgerFolder: config.databaseUrl === null ? config.dataFolder : null,
    consoleUrl: addressesOf(config, settings.port).baseUrl,
    passwordSignIn: config.passwords,
    nodes: work.serving.description,
    sampleModel: work.sampleModel,
    largestPlan: lastPlan(settings.catalog.plans).id,
    planNotices: async () => unconfiguredPlans(settings.catalog.plans, await planCounts(books.accounting)),
    modelNotices: () => [
      ...unknownModels(Object.values(settings.catalog.plans), settings.catalog.models).map(
        ({ plan, problem }) => `The plan "${plan}" ${problem}`,
      ),
      // The catalog's are many, and not each has a node.
      ...(work.served.areOwn ? missingLines(seenModels().served) : []),
    ],
    nodeLine: (node) => nodeLine(node, modelsOn(work.pool.states(), settings.catalog.models)(node)),
    nodeNames: work.pool.states().map(({ name }) => name),
    understoodNames: () => understoodNames(seenModels()),
    accounting: books.accounting,
    log,
    get openRequests() {
      return doors.requests.openRequests;
    },
    openRequestsOf: (account) => doors.requests.openRequestsOf(account),
    begin() {
      life.now = "serving";
    },
    async reload(by) {
      try {
        await gateway.noteReload(by, await gateway.reloader.applyAndLog());
      } catch (error) {
        log("error", "a reload is missing in the audit log", { error: String(error) });
      }
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

// ---------------------------------------------------------------- settings

type Settings = Awaited<ReturnType<typeof readSettings>>;

/** Where the server is in its life; requests are for another gateway, where there is one, until it serves. */
type Life = { now: "starting" | "serving" | "stopping" };

async function readSettings({ flags, environment }: Given, opened: AsyncDisposableStack) {
  const config = await loadConfig(flags, environment);
  checkFolderRights(config.dataFolder, socketFile(config.dataFolder));
  if (flags.gguf !== undefined) checkModelFile(flags.gguf);
  const fileCatalog = await catalogOf(config);
  const catalog = new LiveCatalog(configuredCatalog(config, fileCatalog));
  const live = new LiveConfig(config);
  const clock = systemClock;
  const log = openLog({
    get level() {
      return live.values.logLevel;
    },
    format: config.logFormat ?? usualLogFormat(),
    time: () => clock.wall(),
    secrets: () => live.secrets,
  });
  const tracing = new Tracing(log);
  opened.defer(() => tracing.close());
  await tracing.follow(config);
  // Refusals name the site's address, so the port must be known before the first request.
  const heldPort = config.port === 0 ? listen(config.host, 0, () => holdFreePort(config.host)) : null;
  opened.defer(() => heldPort?.release());
  const life: Life = { now: "starting" };
  return {
    config,
    live,
    life,
    fileCatalog,
    catalog,
    clock,
    log,
    metrics: new Metrics(),
    tracing,
    port: heldPort?.port ?? config.port,
    releasePort: () => heldPort?.release(),
    /** What the nodes' programs get. */
    programEnvironment: () => live.withoutKeys(environment),
  };
}

// ---------------------------------------------------------------- work

type Work = Awaited<ReturnType<typeof openWork>>;

async function openWork(earlier: Given & Settings & OpenedBooks, opened: AsyncDisposableStack) {
  const { config, live, fileCatalog, catalog, clock, log, metrics, port, programEnvironment, flags, onFirstLook } =
    earlier;
  const { accounting, storedResponses, files, sealingKey, shareNodes } = earlier;
  const followedNodes = config.threads > 1 ? new FollowedNodes() : null;
  const pool = new NodePool([], {
    clock,
    queueMaxWaitMs: config.queueMaxWaitMs,
    ...(followedNodes === null ? {} : { follower: followedNodes }),
    log: ({ level, node, message }) => log(level, message, { node }),
    nodeModelOf: catalog.nodeModelOf,
    saltSeed: saltSeedOf(sealingKey),
    parallel: catalog.parallel,
    weightOf: (account) => accounting.planOf(account).weight ?? 1,
    planOf: (account) => accounting.planOf(account).id,
    onEngines: () => served.update(),
    estimate: (ask, account, cancelSignal) => counts.ofUncounted(ask, account, cancelSignal),
    onFirstLook,
  });
  const served = new ServedModels({ live: catalog, catalog: fileCatalog, config, nodes: pool });
  const serving = await findServingNodes(config, flags.demo === true, {
    catalog,
    clock,
    log,
    port,
    environment: programEnvironment,
    busyAt: (url) => pool.busyAt(url),
    leaveGraceMs: () => live.values.stopGraceMs,
  });
  opened.defer(() => serving.stop());
  opened.defer(() => pool.close());
  pool.sharePrefixCaches(config.sharePrefixCache);
  pool.reconfigure(serving.applied.nodes, config.queueMaxWaitMs, serving.applied.arrivals);
  let shares: NodeShares | null = null;
  const shared = sharedNodes(pool);
  if (shareNodes !== null) {
    const dealt = (shares = shareNodes(shared));
    opened.defer(() => dealt.close());
    pool.shareSlots(() => dealt.lineBegan());
    await dealt.exchange();
  }
  const counter = new TokenCounter({ log });
  opened.defer(() => counter.close());
  const counts = new TokenCounts(counter, pool, clock);
  const checker = new AnswerChecker({ log });
  opened.defer(() => checker.close());
  const largeBodies = new LargeBodies({ log, sealingKey, storesResponses: storedResponses !== null });
  opened.defer(() => largeBodies.close());
  const publicFetch = new PublicFetchClient();
  const ownedTools = await OwnedTools.open(config, { accounting, publicFetch, metrics, clock, log });
  opened.defer(() => ownedTools.close());
  return {
    followedNodes,
    pool,
    /** Shares of the nodes' slots by their names; none where there is one gateway. */
    nodeShares: () => (shares === null ? new Map<string, Share>() : shared.named(shares.dealt)),
    served,
    serving,
    /** For samples, as the nodes are now. */
    sampleModel: () => sampleModelOf(catalog, hadModels(catalog, pool.states().map(seenNode)))?.id ?? usualSampleModel,
    counts,
    checker,
    largeBodies,
    media: laterMedia(countedFetch(publicFetch, metrics), files),
    ownedTools,
  };
}

/** Loaded with the first request that has any. */
function laterMedia(fetch: PublicFetch, files: FileStore | null): Pick<Media, "ready"> {
  let media: Promise<Media> | null = null;
  async function load(): Promise<Media> {
    const [{ Media }, { PdfReader }] = await Promise.all([
      import("../tools/media/media.ts"),
      import("../tools/media/pdf-reader.ts"),
    ]);
    return new Media(fetch, new PdfReader(pdfTextCommand), files);
  }
  return { ready: async (...asked) => (await (media ??= load())).ready(...asked) };
}

// ---------------------------------------------------------------- gateway

type Gateway = Awaited<ReturnType<typeof openGateway>>;

async function openGateway(earlier: Given & Settings & OpenedBooks & Work, opened: AsyncDisposableStack) {
  const { flags, environment, config, live, life, catalog, clock, log, metrics, tracing, port, onFatal } = earlier;
  const { usage, activity, requestLog, files, databaseBytes, eraseResponses, adopt, programEnvironment } = earlier;
  const { accounting, watch, storedResponses, sealingKey, followedNodes, pool, served, serving, ownedTools } = earlier;
  const relays =
    followedNodes === null
      ? null
      : (await import("./threads.ts")).startRelays(config, {
          accounting,
          catalog,
          pool,
          storedResponses,
          port,
          sealingKey,
          nodes: followedNodes,
          secrets: () => live.secrets,
          clock,
          log,
          onFatal,
          onLastWords(last) {
            void activity.add(last.activity);
            void requestLog.add(last.failed);
          },
        });
  activity.follow(async () => [...metrics.activity.take(), ...((await relays?.activity()) ?? [])]);
  requestLog.follow(async () => [metrics.failed.take(), ...((await relays?.failed()) ?? [])]);
  opened.defer(async () => {
    const stopping = await relays?.stop(live.values.stopGraceMs);
    await stopping?.stopped;
  });
  const backups = new ScheduledBackups({
    folder: resolve(config.dataFolder, backupsName),
    databaseBytes,
    backup: accounting.backup,
    clock,
    log,
  });
  const notices = new LazyNotices({
    ...earlier,
    dataFolder: config.dataFolder,
    baseUrl: addressesOf(config, port).baseUrl,
    gateway: config.databaseUrl === null ? null : config.gateway,
    backups,
    lowBalanceTokens: () => live.values.lowBalanceTokens,
  });
  opened.defer(() => notices.close());
  const mail = mailOf({ ...earlier, notices, schedule: () => backups.schedule }, opened);
  served.onChange = () => void relays?.adopt();
  const reloader = new Reloader(config, {
    clock,
    async load() {
      if (life.now === "stopping") throw new CommandError("the server is stopping");
      return loadConfig(flags, environment);
    },
    pool,
    running: runningOf({
      values: live.values,
      accounting,
      requestLog,
      watch,
      storedResponses,
      files,
      serving,
      pool,
      ownedTools,
      backups,
      notices,
      mailing: mail,
      served,
      tracing,
    }),
    environment: programEnvironment,
    log,
    adopting: (next) => live.adopting(next),
    adopted: async (next) => {
      await relays?.adopt(next);
      await adopt(next);
    },
  });
  const nodeCare = new NodeCare({ dataFolder: config.dataFolder, pool, catalog, clock, log });
  const unready = unreadyOf(earlier);
  const batches = files === null ? null : batchesOf({ accounting, files });
  const fleet = fleetOf({
    editing: lazyConfigEditor({ config, flags, environment, reloader, clock }),
    pool,
    catalog,
    served,
    reloader,
    nodeCare,
    config,
    testWebhook: (name) => notices.test(name),
    batches: batches?.desk ?? null,
    unready: () => unready((reason) => reason), // who asks may know all
  });
  const consoleUrl = addressesOf(config, port).baseUrl;
  const simulate: OfficeWork["simulate"] = async (asked, progress) => {
    const { simulate } = await import("./fleet/simulate.ts");
    const load = (edit?: ConfigEdit) => loadConfig(flags, environment, edit);
    return simulate({ requestLog, office: accounting.office, clock, load, pool }, asked, progress);
  };
  const own = { usage, requestLog, consoleUrl, eraseResponses, erasedInWords, simulate, fleet };
  const officeWork = mail.on({ ...accounting, ...own });
  return {
    relays,
    backups,
    notices,
    mail,
    reloader,
    /** Records in the audit log who reloaded the configuration, and the result. */
    noteReload: (by: string, outcome: ReloadOutcome): Promise<void> =>
      accounting.office.change(async ({ auditLog, now }) =>
        auditLog.append(serverEntry(now, by, "server.reload", theServer, reloadDetail(outcome))),
      ),
    nodeCare,
    officeWork,
    batches,
    unready,
  };
}

const planCounts = ({ office }: Pick<OpenedBooks["accounting"], "office">) =>
  office.read(({ accounts }) => accounts.byPlan());

/** Why requests should go to another gateway; `unwritable` is what is said of a ledger that cannot be written. */
const unreadyOf =
  ({
    life,
    accounting,
    laneState,
    watch,
  }: Pick<Settings & OpenedBooks, "life" | "accounting" | "laneState" | "watch">) =>
  (unwritable: (reason: string) => string): string | null => {
    if (life.now !== "serving") return life.now;
    const ofLane = laneState?.().unready ?? null;
    if (accounting.unwritable === null) return ofLane ?? unreadyReason(watch.state);
    const why = unwritable(accounting.unwritable);
    return ofLane === null ? why : `${ofLane}: ${why}`;
  };

/** A ledger that contradicts itself goes on serving, but a balancer with another gateway should prefer that. */
function unreadyReason({ violations }: LedgerState): string | null {
  return violations.length === 0
    ? null
    : `the ledger breaks its invariants in ${violations.length} places, see the log`;
}

// ---------------------------------------------------------------- doors

async function openDoors(earlier: Given & Settings & OpenedBooks & Work & Gateway, opened: AsyncDisposableStack) {
  const { flags, config, live, catalog, clock, log, metrics, tracing, port, releasePort } = earlier;
  const { accounting, laneState, usage, activity, requestLog, writeExport, watch, storedResponses, files } = earlier;
  const { sealingKey, pool, nodeShares, served, serving, counts, checker, largeBodies, media, ownedTools } = earlier;
  const { relays, backups, notices, mail, reloader, nodeCare, officeWork, batches, unready, sampleModel } = earlier;

  let webConsole: ServingConsole | null = null;
  const openConsole = async (requests: LiveRequests): Promise<ServingConsole> => {
    const { makeConsole } = await import("./console.ts");
    const { AccountExports } = await import("./kept/account-exports.ts");
    return (webConsole = await makeConsole(config, {
      requests,
      accounting,
      usage,
      activity,
      requestLog,
      files,
      exports: new AccountExports(config.dataFolder, writeExport, clock),
      catalog,
      pool,
      served,
      nodeCare,
      notices,
      work: officeWork,
      reloader,
      backupSchedule: () => backups.schedule,
      alerts: await mail.openAlerts(),
      demo: serving.demo,
      port,
      sealingKey,
      clock,
      log,
    }));
  };

  const hindrances = (): readonly string[] => laneState?.().hindrances ?? [];
  const forCommands: ControlParts = {
    work: officeWork,
    notices: async () => [
      ...(webConsole?.notices() ?? []),
      ...unconfiguredPlans(catalog.plans, await planCounts(accounting)),
      ...hindrances(),
    ],
    started: { config: config.file === null ? null : resolve(config.file), nodes: flags.node ?? [] },
  };
  const handler: Handler = async (...asked) => {
    const { controlHandler } = await import("./control-handler.ts");
    return controlHandler(forCommands)(...asked);
  };
  const control = openControlSocket(config.dataFolder, handler, isExpected);
  opened.defer(() => control.close());
  const lookForResponses =
    storedResponses === null || config.databaseUrl !== null ? () => {} : lookForLostResponses(config.dataFolder, log);
  const looks = setInterval(() => {
    try {
      control.keep();
    } catch (error) {
      log("error", "the command socket is gone and cannot be made again", { reason: (error as Error).message });
    }
    lookForResponses();
  }, folderLookIntervalMs);
  opened.defer(() => clearInterval(looks));

  const server = listen(config.host, port, () =>
    startServer(
      {
        keys: accounting.keys,
        admission: accounting.admission,
        catalog,
        pool,
        habits: new ModelHabits(),
        countInput: (ask, account) => counts.ofUnreported(ask, account),
        largeBodies,
        storedResponses,
        files,
        media,
        checker,
        clock,
        log,
        endUserHeader: () => live.values.endUserHeader,
        get toolLoop() {
          return ownedTools.toolLoop; // another one after a reload
        },
      },
      {
        host: config.host,
        port,
        counts,
        ...(batches === null ? {} : { openBatches: (inside: Inside) => batches.open(inside) }),
        operators: lazyOperators(officeWork, log),
        managedSettings: managedSettingsOf(accounting, live),
        quotes: quotesOf(accounting, pool),
        unix: relays?.unix ?? null,
        others: relays,
        beforeListening: releasePort,
        sealingKey,
        isOpenElsewhere: earlier.isOpenElsewhere,
        openSite: (requests) => lazyConsole(() => openConsole(requests), config.stripe === null ? null : "stripe"),
        addressHeader: config.addressHeader,
        baseUrl: config.baseUrl,
        siteFiles: async () => (await import("./console.ts")).siteFiles(),
        // for everybody: without places on this machine
        sampleModel,
        unready: () => {
          const free = accounting.diskFreeBytes;
          const room = free === null ? "" : ` (${roomInWords(free)})`;
          return unready(() => `the ledger cannot be written${room}, see the log`) ?? noNodeServes(pool.states());
        },
        hindrances,
        metrics,
        get metricsToken() {
          return live.values.metricsToken;
        },
        get corsOrigins() {
          return live.values.corsOrigins;
        },
        behindProxy: isBehindProxy(config),
        get tracer() {
          return tracing.tracer;
        },
        get logsRequests() {
          return live.values.logLevel === "debug";
        },
        nodesContext: (modelId) => pool.contextTokensOf(modelId),
        gauges: async () => {
          const { gaugesOf } = await import("./gauges.ts");
          return gaugesOf({ accounting, laneState, nodeShares, watch, storedResponses, pool, backups, notices });
        },
      },
    ),
  );
  opened.defer(async () => {
    const { stopGraceMs } = live.values;
    const relaysStopping = await relays?.stop(stopGraceMs); // what they pass on is answered until they take no more
    await Promise.all([relaysStopping?.stopped, server.stop(stopGraceMs)]);
  });
  opened.defer(() => batches?.close());
  if (relays !== null) {
    releasePort();
    await relays.listen().catch((error: unknown) => {
      throw cannotListen(config.host, port, error);
    });
  }
  const requests = relays === null ? server : together(server, relays);

  watch.begin(() => ({
    requests: requests.openRequests + (batches?.underWay ?? 0),
    nodesBusy: pool.states().reduce((sum, { busy }) => sum + busy, 0),
    waiting: pool.waiting,
  }));
  await notices.configure(config.webhooks);
  await mail.follow(config.mail);
  backups.follow(config.backups);
  opened.defer(() => backups.close());
  return { url: server.url, requests };
}

/** Alerts are loaded when somebody looks, or where mail tells of them. */
function mailOf({ config, port, sealingKey, schedule, ...parts }: MailParts, opened: AsyncDisposableStack) {
  const { baseUrl } = addressesOf(config, port);
  let alerts: Promise<Alerts> | null = null;
  const openAlerts = (): Promise<Alerts> =>
    (alerts ??= import("./alerts.ts").then(({ alertsOf }) =>
      alertsOf(config, { ...parts, port, mail: () => mailing.desk, backupSchedule: schedule }),
    ));
  const list = async () => (await openAlerts()).list();
  const mailing = new Mailing({ ...parts, secret: sealingKey, baseUrl, alerts: { list } });
  opened.defer(() => mailing.close());
  return {
    openAlerts,
    follow: (next: Config["mail"]) => mailing.follow(next),
    on: <Of extends object>(work: Of) =>
      Object.defineProperty(work, "mail", { get: () => mailing.desk, enumerable: true }) as Of &
        Pick<OfficeWork, "mail">,
  };
}
type MailParts = Settings & OpenedBooks & Work & Readonly<{ notices: LazyNotices; schedule(): BackupSchedule | null }>;

/** By the plan of the account, now. */
const managedSettingsOf =
  ({ office }: Pick<Accounting, "office">, { values }: LiveConfig): ManagedSettingsOf =>
  async (id) => {
    const tables = values.managedSettings;
    if (tables.length === 0) return null;
    const account = await office.read(({ accounts }) => accounts.record(id));
    const fits = tables.find(({ plans }) => account !== null && (plans?.includes(account.plan) ?? true));
    return fits?.settings ?? null;
  };

/** Loaded when somebody asks, where some have been, and where another gateway may leave one behind. */
function batchesOf({ accounting, files }: Readonly<{ accounting: Accounting; files: FileStore }>) {
  const { keys, office, finds } = accounting;
  const folder = files.batchesFolder;
  const inside = Promise.withResolvers<Inside>();
  let loading: Promise<ReturnType<typeof OpenBatches>> | null = null;
  let loaded: Batches | null = null;
  const load = async () => {
    const { openBatches } = await import("../batches/open-batches.ts");
    const opened = openBatches(await inside.promise, {
      folder,
      files,
      ofHash: (keyHash) => keys.ofHash(keyHash),
      planOf: (account) => accounting.planOf(account),
      isCharged: (requestId) => office.read(({ accounts }) => accounts.hasEntry(requestId)),
      emailOf: (account) => office.read(async ({ accounts }) => (await accounts.record(account))?.email ?? null),
      ...(finds === null ? {} : { lease: finds.lease }),
    });
    loaded = opened.batches;
    return opened;
  };
  const asked = (): NonNullable<typeof loading> => (loading ??= load());
  return {
    open(given: Inside): AnswerKept {
      inside.resolve(given);
      if (finds !== null || existsSync(folder)) void asked();
      return async (route, kept) => (await asked()).answer(route, kept);
    },
    desk: {
      list: async (...of) => (await asked()).desk.list(...of),
      show: async (id) => (await asked()).desk.show(id),
      cancel: async (id) => (await asked()).desk.cancel(id),
    } satisfies BatchesDesk,
    get underWay() {
      return loaded?.underWay ?? 0;
    },
    close: async () => (await loading)?.batches.close(),
  };
}

/** Loaded when somebody asks: most servers are never asked. */
function lazyOperators(work: OfficeWork, log: Log): Operators {
  let loaded: Promise<Operators> | null = null;
  const operators = (): Promise<Operators> =>
    (loaded ??= import("../office/operators-api.ts").then(({ OperatorsApi }) => new OperatorsApi(work, log)));
  return {
    answer: async (...asked) => (await operators()).answer(...asked),
    description: async () => (await operators()).description(),
  };
}

const quotesOf = (accounting: Pick<Accounting, "planOf">, pool: Pick<NodePool, "forecast">): Quotes => ({
  expect(ask, { account, limits }) {
    const priority = priorityOf(accounting.planOf(account), ask.priority, limits);
    return { priority, forecast: pool.forecast(ask, account, { member: "", weight: 1, priority }) };
  },
  price(model, usage) {
    const tokens = billedTokens(ratesOf(model.price), usage);
    return { tokens, usd: costUsd(tokens) };
  },
});
