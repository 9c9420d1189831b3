// tollgate serve: composes a server, runs it until a signal, and takes it apart.
import type { AuditAction } from "../core/audit-actions.ts";
import { networkInterfaces } from "node:os";
import { version } from "../../package.json" with { type: "json" };
import { pathOf } from "../account/sign-in/access-links.ts";
import { EmailTaken } from "../account/people/accounts.ts";
import { serverEntry } from "../account/audit.ts";
import type { ConfigFlags } from "../config/config.ts";
import { newDataFolder, olderDataFolder, usualDataFolder } from "../config/usual-data-folder.ts";
import { systemClock } from "../core/clock.ts";
import { passwordLinkMs } from "../core/limits.ts";
import { type AccountId, StoreUnavailable } from "../core/types.ts";
import { compose, type ComposedServer } from "../server/compose.ts";
import { firstStopSignal, HangUps } from "../server/process/signals.ts";
import { dropStartLeftovers } from "../server/process/start-leftovers.ts";
import { watchFlushTime } from "../store/folder/flush-time.ts";
import { type Flags, type Invocation, textFlag, UsageError } from "./command.ts";
import { generatedPassword } from "./new-password.ts";

const operatorEmail = "operator@localhost";
const noOperator =
  "No account is an operator: tollgate accounts create EMAIL --operator --password PASSWORD makes one.";
/** Pause before a start asks an unavailable database again. */
const startRetryMs = 500;

export default async function serve({ flags, environment }: Invocation): Promise<number> {
  const given = flagsOf(flags);
  if (given.demo === true && (given.node !== undefined || given.gguf !== undefined)) {
    throw new UsageError("serve: --demo serves with the demo node alone; leave out --node and --gguf");
  }
  const hangUps = new HangUps();
  const listening = Promise.withResolvers<void>();
  const lookedAt = new Set<string>();
  let isFirstStart = false;
  await using server = await compose({
    flags: given,
    environment,
    onFirstLook: (node) =>
      void listening.promise.then(() => {
        console.log(server.nodeLine(node));
        if (lookedAt.has(node.name)) return;
        lookedAt.add(node.name);
        // Once: a reload is no start.
        if (lookedAt.size !== server.nodeNames.length) return;
        console.log(server.understoodNames());
        for (const notice of server.modelNotices()) console.log(notice.endsWith("?") ? notice : `${notice}.`);
        if (isFirstStart) console.log(firstRequest(server));
      }),
    onFatal: endAtOnce,
  });
  const isNamed = given.data !== undefined || (environment["TOLLGATE_DATA"] ?? "") !== "";
  const isOfOlderStart = !isNamed && usualDataFolder() === olderDataFolder;
  const stopped = firstStopSignal(systemClock, () => process.exit(1));
  hangUps.follow(() => void server.reload("SIGHUP"));

  const { url, place, ledgerFolder, nodes } = server;
  const stopping = new AbortController();
  void stopped.then(() => stopping.abort());
  let made: string | null = null;
  const notices = await untilAnswered(server, stopping.signal, async () => {
    const { office } = server.accounting;
    if (made === null && (await office.read(({ accounts }) => accounts.none()))) {
      made = await createOperator(server);
      if (made !== null) console.log(made);
    }
    const ofPlans = (await server.planNotices()).map((notice) => `${notice}.`);
    const hasOperator = made !== null || (await office.read(({ accounts }) => accounts.hasOperator()));
    return hasOperator ? ofPlans : [noOperator, ...ofPlans];
  });
  if (notices === null) return 0;
  isFirstStart = made !== null;
  for (const notice of notices) console.log(notice);
  server.begin();
  console.log(`Tollgate ${version} listening on ${url}, ${place}`);
  if (isOfOlderStart) {
    console.log(`The data stays in ${olderDataFolder}, where it was; a new start makes ${newDataFolder}.`);
  }
  for (const line of otherMachines(server)) console.log(line);
  console.log(nodes);
  listening.resolve();
  using _flushTime = ledgerFolder === null ? null : watchFlushTime(ledgerFolder, server.log);
  void settleIn(server, stopping.signal);

  await stopped;
  return 0;
}

function flagsOf(flags: Flags): ConfigFlags {
  return {
    config: textFlag(flags, "config"),
    host: textFlag(flags, "host"),
    port: textFlag(flags, "port"),
    data: textFlag(flags, "data"),
    node: flags["node"] as readonly string[] | undefined,
    gguf: textFlag(flags, "gguf"),
    threads: textFlag(flags, "threads"),
    demo: flags["demo"] === true,
  };
}

/** Waits for a database that is unavailable for a moment. Null: the server was stopped meanwhile. */
async function untilAnswered<Answer>(
  { log }: ComposedServer,
  signal: AbortSignal,
  ask: () => Promise<Answer>,
): Promise<Answer | null> {
  while (!signal.aborted) {
    try {
      return await ask();
    } catch (thrown) {
      if (!(thrown instanceof StoreUnavailable)) throw thrown;
      log("warn", "the start waits for the database", { reason: thrown.message });
      await Promise.race([
        Bun.sleep(startRetryMs),
        new Promise((resolve) => signal.addEventListener("abort", resolve)),
      ]);
    }
  }
  return null;
}

/** Idle work after the start. */
async function settleIn(server: ComposedServer, signal: AbortSignal): Promise<void> {
  const { log, threads } = server;
  const isIdle = (): boolean => server.openRequests === 0;
  if (!(await dropStartLeftovers(isIdle))) return; // it warms itself up
  if (threads > 1) return; // each thread has compiled code of its own
  const { warmUp } = await import("../server/process/warm-up.ts");
  try {
    log("debug", "warmed up", { streams: await warmUp({ isIdle, signal }) });
  } catch (error) {
    log("warn", "warming up failed: the first requests take longer", { error: String(error) });
  }
}

/** The disk failed: nothing may be written or acknowledged anymore. The next start finds out what is on disk. */
function endAtOnce(error: Error): void {
  console.error(`tollgate: ${error.message}`);
  process.exit(1);
}

/** For a shell, with the key that was shown, and this server's models. */
function firstRequest({ baseUrl, sampleModel }: Pick<ComposedServer, "baseUrl" | "sampleModel">): string {
  const body = JSON.stringify({ model: sampleModel(), messages: [{ role: "user", content: "Say hello" }] });
  return [
    "A first request, with the key above in TOLLGATE_KEY; samples for other clients are on the console's key page:",
    `  curl ${baseUrl}/v1/chat/completions -H "authorization: Bearer $TOLLGATE_KEY" -H "content-type: application/json" -d '${body}'`,
  ].join("\n");
}

/** If it listens on all addresses, one line that says what to open instead of 0.0.0.0. */
function otherMachines({ url, baseUrl }: Pick<ComposedServer, "url" | "baseUrl">): string[] {
  const { hostname, port } = new URL(url);
  if (hostname !== "0.0.0.0" && hostname !== "[::]") return [];
  const addresses = Object.values(networkInterfaces())
    .flatMap((each) => each ?? [])
    .filter(({ family, internal }) => family === "IPv4" && !internal)
    .map(({ address }) => new URL(`http://${address}:${port || "80"}`).origin);
  const others = addresses.length === 0 ? "" : `; other machines: ${addresses.join(", ")}`;
  return [`Open ${baseUrl} here${others}.`];
}

/** Makes sign-in possible; password and key are shown once. Null: another gateway was first. */
async function createOperator({
  accounting,
  consoleUrl,
  passwordSignIn,
  largestPlan: plan,
}: ComposedServer): Promise<string | null> {
  const { office, passwords } = accounting;
  const password = passwordSignIn ? generatedPassword() : null;
  const hashed = password === null ? {} : { passwordHash: await passwords.hashNew(password) };
  const making = office.change(async (unit) => {
    const { accounts, auditLog, links, now } = unit;
    const note = (action: AuditAction, id: AccountId, detail: string): void =>
      auditLog.append(serverEntry(now, "first start", action, id, detail));
    const made = await accounts.create({ email: operatorEmail, plan, operator: true, ...hashed });
    note("account.create", made.id, `plan ${plan}, an operator`);
    if (password !== null) return { ...made, signIn: `  password  ${password}` };
    const link = await links.make(await accounts.passwordLink(made.id, now + passwordLinkMs));
    note("account.password_link", made.id, `link ${link.link.id}`);
    return { ...made, signIn: `  sign in   ${consoleUrl}${pathOf(link)} (once, within a day)` };
  });
  let created;
  try {
    created = await making;
  } catch (thrown) {
    if (thrown instanceof EmailTaken) return null;
    throw thrown;
  }
  const what = passwordSignIn ? "password" : "link";
  return [
    `A first account was created. Its ${what} and API key are shown only once:`,
    `  e-mail    ${operatorEmail}`,
    created.signIn,
    `  API key   ${created.api_key}`,
  ].join("\n");
}
