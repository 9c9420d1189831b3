// tollgate serve: puts the parts together, runs until it is told to stop, and takes them apart in the reverse order.
import { pdfTextCommand } from "../tools/media/pdf-command.ts";
import { catalogOf } from "../config/configured-catalog.ts";
import { statSync } from "node:fs";
import { join, resolve } from "node:path";
import { version } from "../../package.json" with { type: "json" };
import { byCommandOf, serverEntry, theServer } from "../account/audit.ts";
import { type Accounting, openAccounting } from "../accounting.ts";
import { LargeBodies } from "../bodies/large-bodies.ts";
import { LiveCatalog } from "../core/catalog.ts";
import { type Clock, systemClock } from "../core/clock.ts";
import {
  addressesOf,
  checkModelIds,
  type Config,
  type ConfigFlags,
  type Environment,
  isBehindProxy,
  loadConfig,
} from "../config/config.ts";
import { reloadDetail } from "../console/server-care.ts";
import { sealingKeyBytes } from "../dialects/request/sealed-content.ts";
import type { Parts } from "../gateway.ts";
import { startServer } from "../http/app.ts";
import { holdFreePort } from "../http/free-port.ts";
import type { Gauge } from "../http/metrics/metric.ts";
import { together } from "../http/other-threads.ts";
import { Metrics } from "../http/metrics/metrics.ts";
import { folderLookIntervalMs } from "../core/limits.ts";
import { type Log, openLog, usualLogFormat } from "../core/log.ts";
import { NodePool } from "../nodes/queue/pool.ts";
import { FollowedNodes } from "../threads/followed-nodes.ts";
import { backupsName, responsesName } from "../store/folder/data-folder.ts";
import { FilePlaces } from "../store/folder/file-places.ts";
import { sealingKeyOf } from "../store/folder/sealing-key.ts";
import { StoredResponsesFile } from "../store/responses/stored-responses.ts";
import type { LedgerState, LedgerWatch } from "../store/verify/verify-watch.ts";
import { Counter } from "../tokens/counter.ts";
import { TokenCounts } from "../tokens/node-count.ts";
import { Media } from "../tools/media/media.ts";
import { PdfReader } from "../tools/media/pdf-reader.ts";
import { PublicFetchClient } from "../tools/fetch/public-fetch-client.ts";
import { AnswerChecker } from "../tools/format/answer-checker.ts";
import { type Command, type Flags, textFlag, UsageError } from "./command.ts";
import { type Handler, openControlSocket, socketFile } from "../server/control-socket.ts";
import { countedFetch } from "../server/counted-tools.ts";
import { isExpected, CommandError } from "../core/expected-error.ts";
import { checkFolderRights } from "../server/folder-rights.ts";
import { healthOf, nodeLine, noNodeServes } from "../server/node-lines.ts";
import { generatedPassword } from "./new-password.ts";
import { nodeReports } from "./nodes.ts";
import {
  isOperationName,
  type OperationArguments,
  type OperationName,
  runOperation,
  type Work,
} from "../server/operations.ts";
import { OwnedTools } from "../server/owned-tools.ts";
import { Reloader, type ReloadOutcome } from "../server/reload.ts";
import { ScheduledBackups } from "../server/scheduled-backups.ts";
import { makeConsole } from "../server/console.ts";
import { checkModelFile, findServingNodes } from "../server/nodes.ts";
import { startRelays } from "../server/threads.ts";
import type { StartedWith } from "./started-with.ts";
import { dropStartLeftovers } from "../server/start-leftovers.ts";
import { firstStopSignal, HangUps } from "../server/signals.ts";
import { Tracing } from "../telemetry/tracing.ts";

const operatorEmail = "operator@localhost";

const command: Command = {
  words: [],
  flags: {
    config: { type: "string" },
    host: { type: "string" },
    port: { type: "string" },
    data: { type: "string" },
    node: { type: "string", multiple: true },
    gguf: { type: "string" },
    demo: { type: "boolean" },
    threads: { type: "string" },
  },
  async run({ flags, environment }) {
    const given = flagsOf(flags);
    const demoOnly = flags["demo"] === true;
    if (demoOnly && (given.node !== undefined || given.gguf !== undefined)) {
      throw new UsageError("serve: --demo serves with the demo node alone; leave out --node and --gguf");
    }
    const hangUps = new HangUps();
    const config = await loadConfig(given, environment);
    checkFolderRights(config.dataFolder, socketFile(config.dataFolder));
    if (given.gguf !== undefined) checkModelFile(given.gguf);
    let inForce = config; // another one after a reload
    let stopping = false;
    const catalog = new LiveCatalog(await catalogOf(config));
    checkModelIds(config, catalog);

    const clock = systemClock;
    let secrets = secretsOf(config);
    let givenKeys = keysOf(config);
    const programEnvironment = () => without(givenKeys, environment);
    const log = openLog({
      get level() {
        return inForce.log.level;
      },
      format: config.log.format ?? usualLogFormat(),
      time: () => clock.wall(),
      secrets: () => secrets,
    });
    const metrics = new Metrics();
    const tracing = new Tracing(log);
    await tracing.follow(config);
    // Refusals name the site's address, so the port must be known before the first request.
    const heldPort = config.port === 0 ? listen(config.host, 0, () => holdFreePort(config.host)) : null;
    const port = heldPort?.port ?? config.port;
    const [accounting, serving] = await Promise.all([
      openAccounting({
        dataFolder: config.dataFolder,
        catalog,
        siteUrl: addressesOf(config, port).siteUrl,
        clock,
        onFatal: endAtOnce,
        onWritable: (unwritable) =>
          unwritable === null
            ? log("info", "the ledger can be written again: requests are taken")
            : log("error", "the ledger cannot be written: requests are refused", { reason: unwritable }),
        onCommit: metrics.countCommit,
        usageKeepDays: config.usageKeepDays,
      }),
      findServingNodes(config, demoOnly, {
        catalog,
        clock,
        log,
        port,
        environment: programEnvironment,
        busyAt: (url) => pool.busyAt(url),
        leaveGraceMs: () => inForce.stopGraceMs,
      }),
    ]);
    const storedResponses =
      config.storedResponses === null
        ? null
        : await StoredResponsesFile.open({ dataFolder: config.dataFolder, log, ...config.storedResponses });
    const responsesWatch = storedResponses === null ? null : watchResponses(config.dataFolder, log);
    const followedNodes = config.threads > 1 ? new FollowedNodes() : null;
    const listening = Promise.withResolvers<void>();
    const pool = new NodePool(serving.applied.nodes, {
      clock,
      arrivals: serving.applied.arrivals,
      queueMaxWaitMs: config.queueMaxWaitMs,
      ...(followedNodes === null ? {} : { follower: followedNodes }),
      log: ({ level, node, message }) => log(level, message, { node }),
      onFirstLook: (node) => void listening.promise.then(() => console.log(nodeLine(node))),
    });
    const { keys, admission } = accounting;
    admission.line.maxWaitMs = config.queueMaxWaitMs;
    const counter = new Counter({ log });
    const checker = new AnswerChecker({ log });
    const sealingKey = sealingKeyOf(config.dataFolder, sealingKeyBytes);
    const largeBodies = new LargeBodies({ log, sealingKey, storesResponses: storedResponses !== null });
    const counts = new TokenCounts(counter, pool, clock);
    const publicFetch = new PublicFetchClient();
    const media = new Media(countedFetch(publicFetch, metrics), new PdfReader(pdfTextCommand));
    const ownedTools = await OwnedTools.open(config, { accounting, publicFetch, metrics, clock, log });
    const countInput: Parts["countInput"] = (ask, account) => counts.ofUnreported(ask, account);
    const backups = new ScheduledBackups({
      folder: resolve(config.dataFolder, backupsName),
      databaseBytes: () => statSync(accounting.databaseFile).size,
      backup: accounting.backup,
      clock,
      log,
    });
    let watch: LedgerWatch | null = null;
    const reloader = new Reloader(config, {
      clock,
      async load() {
        if (stopping) throw new CommandError("the server is stopping");
        return loadConfig(given, environment);
      },
      catalog,
      serving,
      pool,
      ownedTools,
      environment: programEnvironment,
      log,
      adopting(next) {
        // Requests to the nodes of before may still run.
        secrets = [...new Set([...secrets, ...secretsOf(next)])];
        givenKeys = [...new Set([...givenKeys, ...keysOf(next)])];
      },
      async adopted(next) {
        accounting.retain(next.usageKeepDays);
        backups.follow(next.backups);
        admission.line.maxWaitMs = next.queueMaxWaitMs;
        if (next.storedResponses !== null) storedResponses?.limit(next.storedResponses);
        inForce = next;
        await tracing.follow(next);
        await relays?.adopt(next);
      },
      plansChanged: () => watch?.plansChanged(),
    });
    const work: Work = {
      ...accounting,
      eraseResponses: (account, forEver) =>
        storedResponses?.erase(account, forEver) ?? StoredResponsesFile.eraseIn(config.dataFolder, account, log),
    };
    const webConsole = await makeConsole(config, {
      accounting,
      catalog,
      pool,
      work,
      reloader,
      backupSchedule: () => inForce.backups,
      demo: serving.demo,
      port,
      sealingKey,
      clock,
      log,
    });
    const unready = () =>
      stopping ? "stopping" : (unwritableReason(accounting.unwritable) ?? unreadyReason(watch?.state));
    const relays =
      followedNodes === null
        ? null
        : startRelays(config, {
            accounting,
            catalog,
            pool,
            storedResponses,
            port,
            sealingKey,
            nodes: followedNodes,
            secrets: () => secrets,
            clock,
            log,
            onFatal: endAtOnce,
          });
    const server = listen(config.host, port, () =>
      startServer(
        {
          keys,
          admission,
          catalog,
          pool,
          countInput,
          largeBodies,
          storedResponses,
          media,
          checker,
          clock,
          log,
          get toolLoop() {
            return ownedTools.toolLoop; // another one after a reload
          },
        },
        {
          host: config.host,
          port,
          counts,
          unix: relays?.unix ?? null,
          others: relays,
          beforeListening: () => heldPort?.release(),
          sealingKey,
          openSite: webConsole.openSite,
          baseUrl: config.baseUrl,
          siteFiles: webConsole.siteFiles,
          unready: () => unready() ?? noNodeServes(pool.states()),
          metrics,
          get metricsToken() {
            return inForce.metricsToken;
          },
          get corsOrigins() {
            return inForce.corsOrigins;
          },
          behindProxy: isBehindProxy(config),
          get tracer() {
            return tracing.tracer;
          },
          get logsRequests() {
            return inForce.log.level === "debug";
          },
          nodesContext: (modelId) => pool.contextTokensOf(modelId),
          gauges: () => gaugesOf(pool, accounting, storedResponses, backups, watch?.state),
        },
      ),
    );
    if (relays !== null) {
      heldPort?.release();
      await relays.listen().catch((error: unknown) => {
        throw cannotListen(config.host, port, error);
      });
    }
    const live = relays === null ? server : together(server, relays);
    watch = accounting.watch(log, () => ({
      requests: live.openRequests,
      nodesBusy: pool.states().reduce((sum, { busy }) => sum + busy, 0),
      waiting: pool.waiting,
    }));
    const noteReload = (by: string, outcome: ReloadOutcome): Promise<void> =>
      accounting.auditLog.note(serverEntry(clock.wall(), by, "server.reload", theServer, reloadDetail(outcome)));
    const toldUnready = () => accounting.unwritable ?? unready(); // whoever reaches the socket may know all
    const asked = { pool, reloader, noteReload, unready: toldUnready, notices: webConsole.notices };
    const handler = controlHandler(work, { ...asked, started: startedWith(given, config) });
    const control = openControlSocket(config.dataFolder, handler, isExpected);
    const looks = setInterval(() => {
      try {
        control.keep();
      } catch (error) {
        log("error", "the socket of the commands is gone and cannot be made", { reason: (error as Error).message });
      }
      responsesWatch?.();
    }, folderLookIntervalMs);
    const stopped = firstStopSignal(clock, () => process.exit(1));
    hangUps.follow(() => {
      const noted = reloader.applyAndLog().then((outcome) => noteReload("SIGHUP", outcome));
      noted.catch((error: unknown) => log("error", "a reload is not in the audit log", { error: String(error) }));
    });

    if (accounting.accounts.none) console.log(await createOperator(accounting));
    else if (!accounting.accounts.hasOperator) {
      console.log(
        "No account is an operator: tollgate accounts create EMAIL --operator --password PASSWORD makes one.",
      );
    }
    console.log(`Tollgate ${version} listening on ${server.url}, data in ${config.dataFolder}`);
    console.log(serving.description);
    listening.resolve();
    backups.follow(config.backups);
    dropStartLeftovers(() => live.openRequests === 0);

    await stopped;
    stopping = true;
    const { stopGraceMs } = inForce;
    backups.close();
    const relaysStopping = await relays?.stop(stopGraceMs);
    log("info", "stopping", { openRequests: live.openRequests, graceSeconds: stopGraceMs / 1000 });
    await Promise.all([relaysStopping?.stopped, server.stop(stopGraceMs)]);
    clearInterval(looks);
    await control.close();
    await pool.close();
    await largeBodies.close();
    await counter.close();
    await checker.close();
    await ownedTools.close();
    await serving.stop();
    await storedResponses?.close();
    await webConsole.close();
    await accounting.close();
    await tracing.close();
    return 0;
  },
};
export default command;

function flagsOf(flags: Flags): ConfigFlags {
  return {
    config: textFlag(flags, "config"),
    host: textFlag(flags, "host"),
    port: textFlag(flags, "port"),
    data: textFlag(flags, "data"),
    node: flags["node"] as readonly string[] | undefined,
    gguf: textFlag(flags, "gguf"),
    threads: textFlag(flags, "threads"),
  };
}

/** What the log must never say, whatever the text of an error holds: keys, and addresses of nodes. */
const secretsOf = (config: Config): readonly string[] => [
  ...keysOf(config),
  ...config.nodes.flatMap(({ url }) => [url, URL.parse(url)?.host ?? url]),
];

function keysOf({ nodes, search, mcp, stripe, metricsToken }: Config): readonly string[] {
  const keys = [
    metricsToken,
    stripe?.secretKey,
    stripe?.webhookSecret,
    search !== null && "apiKey" in search ? search.apiKey : null,
    ...mcp.map(({ reached }) => (reached.by === "http" ? reached.apiKey : null)),
    ...nodes.map(({ apiKey }) => apiKey),
  ];
  return keys.filter((text): text is string => text !== null && text !== undefined && text !== "");
}

/** For the nodes' programs: engines read many variables, but none of them is to see the gateway's keys. */
function without(keys: readonly string[], environment: Environment): Readonly<Record<string, string>> {
  const given = Object.entries(environment).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && !keys.includes(entry[1]),
  );
  return Object.fromEntries(given);
}

/** The disk failed: nothing may be written or acknowledged after that. The next start finds out what is on disk. */
function endAtOnce(error: Error): void {
  console.error(`tollgate: ${error.message}`);
  process.exit(1);
}

/** Runs `start` and turns what the system says about the address into words. */
function listen<Started>(host: string, port: number, start: () => Started): Started {
  try {
    return start();
  } catch (error) {
    throw cannotListen(host, port, error);
  }
}

function cannotListen(host: string, port: number, error: unknown): CommandError {
  const { code, message } = error as Error & { code?: string };
  if (code === "EADDRINUSE") {
    return new CommandError(`port ${port} on ${host} is taken by another program; choose another with --port N`);
  }
  if (code === "EACCES") return new CommandError(`port ${port} on ${host} is not allowed to this user`);
  return new CommandError(`cannot listen on ${host} port ${port}: ${message}`);
}

/** Without an account nobody could sign in; its password and key are shown this once. */
async function createOperator({ accounts, auditLog }: Accounting): Promise<string> {
  const password = generatedPassword();
  const { api_key } = await accounts.create({ email: operatorEmail, plan: "pro", password, operator: true }, (id) =>
    auditLog.append(serverEntry(systemClock.wall(), "first start", "account.create", id, "plan pro, an operator")),
  );
  return [
    "A first account was made. Its password and API key are shown this once:",
    `  e-mail    ${operatorEmail}`,
    `  password  ${password}`,
    `  API key   ${api_key}`,
  ].join("\n");
}

/** What else `check` and `doctor` must know to see what this server sees. */
const startedWith = ({ node }: ConfigFlags, { file }: Config): StartedWith => ({
  config: file === null ? null : resolve(file),
  nodes: node ?? [],
});

/** Stored responses are no money: who removed their file is told once what comes of it. */
function watchResponses(folder: string, log: Log): () => void {
  const file = join(folder, responsesName);
  const places = new FilePlaces([file]);
  let isTold = false;
  return () => {
    if (isTold || places.lost === null) return;
    isTold = true;
    log("error", "the stored responses were removed, moved or replaced: what is stored is lost at the next start", {
      file,
      remedy: "put that very file back, or start the server again to begin with none",
    });
  };
}

type Asked = Readonly<{
  pool: NodePool;
  reloader: Reloader;
  noteReload(by: string, outcome: ReloadOutcome): Promise<void>;
  unready: () => string | null;
  notices: () => readonly string[];
  started: StartedWith;
}>;

/** What the commands ask through the socket in the data folder. */
function controlHandler(work: Work, { pool, reloader, noteReload, unready, notices, started }: Asked): Handler {
  return async (operation, given, progress, user) => {
    if (operation === "reload") {
      const applying = reloader.apply();
      const outcome = await applying.catch((error: Error): ReloadOutcome => ({ refused: error.message }));
      await noteReload(byCommandOf(user), outcome);
      return applying; // or what is wrong with the configuration
    }
    if (operation === "health") return healthOf(unready(), pool);
    if (operation === "started with") return started;
    if (operation === "nodes") return nodeReports(pool);
    if (operation === "notices") return notices();
    if (isOperationName(operation)) {
      return runOperation(operation, { ...work, user }, given as OperationArguments<OperationName>, progress);
    }
    throw new CommandError(`the running server (version ${version}) does not know "${operation}"; restart it`);
  };
}

/** For everybody: without places on this machine. */
const unwritableReason = (unwritable: string | null): string | null =>
  unwritable === null ? null : "the ledger cannot be written, see the log";

/** A ledger that contradicts itself goes on serving, but a balancer with another gateway should prefer that. */
function unreadyReason(ledger: LedgerState | undefined): string | null {
  const found = ledger?.violations.length ?? 0;
  return found === 0 ? null : `the ledger breaks its invariants in ${found} places, see the log`;
}

function* gaugesOf(
  pool: NodePool,
  { journal, admission }: Accounting,
  storedResponses: StoredResponsesFile | null,
  { lastMadeAt }: ScheduledBackups,
  ledger: LedgerState | undefined,
): Generator<Gauge> {
  if (ledger !== undefined) yield* ledgerGauges(ledger);
  if (lastMadeAt !== null) {
    yield {
      name: "tollgate_backup_timestamp_seconds",
      help: "When the last backup of the schedule was made.",
      value: lastMadeAt / 1000,
    };
  }
  yield { name: "tollgate_queue_waiting", help: "Requests that wait for a node.", value: pool.waiting };
  yield {
    name: "tollgate_balance_waiting",
    help: "Requests that wait until others of their account have settled.",
    value: admission.line.length,
  };
  yield { name: "tollgate_journal_pending", help: "Journal entries on their way to disk.", value: journal.pending };
  if (storedResponses !== null) {
    yield {
      name: "tollgate_stored_responses_waiting_bytes",
      help: "Stored responses on their way to disk.",
      value: storedResponses.waitingBytes,
    };
  }
  for (const { name: node, health, since, lastError, busy, slots } of pool.states()) {
    const labels = { node };
    for (const each of ["well", "cooling", "down", "starting"] as const) {
      yield {
        name: "tollgate_node_health",
        help: "1 for the health that the node has: well, cooling (it said that it is busy), down or starting.",
        value: each === health ? 1 : 0,
        labels: { node, health: each },
      };
    }
    yield {
      name: "tollgate_node_health_since_timestamp_seconds",
      help: "Since when the node has the health that it has.",
      value: since / 1000,
      labels,
    };
    if (lastError !== null) {
      yield {
        name: "tollgate_node_last_error_timestamp_seconds",
        help: "When something last went wrong on the node that no client is to blame for; the log says what.",
        value: lastError.at / 1000,
        labels,
      };
    }
    yield {
      name: "tollgate_node_well",
      help: "1 where the node takes requests.",
      value: health === "well" ? 1 : 0,
      labels,
    };
    yield { name: "tollgate_node_busy", help: "Requests that the node runs.", value: busy, labels };
    yield { name: "tollgate_node_slots", help: "Requests that the node may run at once.", value: slots, labels };
  }
}

/** Times are left out until they are known: 0 would be a check in 1970. */
function* ledgerGauges({ violations, checkedAt, durationMs, wholePassAt }: LedgerState): Generator<Gauge> {
  yield {
    name: "tollgate_ledger_violations",
    help: "Places in which the ledger contradicts itself; the log names them.",
    value: violations.length,
  };
  if (checkedAt === null || durationMs === null) return;
  yield {
    name: "tollgate_ledger_check_timestamp_seconds",
    help: "When the ledger was last checked; once a minute.",
    value: checkedAt / 1000,
  };
  yield {
    name: "tollgate_ledger_check_duration_seconds",
    help: "How long that check took, most of it resting.",
    value: durationMs / 1000,
  };
  if (wholePassAt === null) return;
  yield {
    name: "tollgate_ledger_whole_pass_timestamp_seconds",
    help: "When the walk over all accounts was last completed.",
    value: wholePassAt / 1000,
  };
}
