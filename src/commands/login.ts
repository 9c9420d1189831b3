// tollgate login and logout, on the machine of somebody who uses a gateway: the device flow of src/console/device-flow.ts, its
// token in a file of the user's own, and settings for coding agents. Nothing here opens a data folder.
import { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { homedir, hostname } from "node:os";
import { dirname, join } from "node:path";
import { agentSettings } from "../core/agent-settings.ts";
import { boundedText } from "../core/bounded-text.ts";
import { systemClock } from "../core/clock.ts";
import { CommandError } from "../core/expected-error.ts";
import { hourMs } from "../core/units.ts";
import { type Invocation, textFlag, UsageError } from "./command.ts";

const answerMs = 15_000;
const answerMaxBytes = 4 << 20;
const deviceGrant = "urn:ietf:params:oauth:grant-type:device_code";
/** Who died while it renewed the token keeps others waiting for this long. */
const lockStaleMs = 30_000;

/** What the file has. */
type Login = Readonly<{
  gateway: string;
  email: string;
  access_token: string;
  refresh_token: string;
  expires_at: number;
  /** From then on `--token` renews it. */
  renew_at: number;
  token_endpoint: string;
  revocation_endpoint: string;
}>;
type Endpoints = Pick<Login, "gateway" | "token_endpoint" | "revocation_endpoint">;
type Reply = Readonly<{ status: number; body: Readonly<Record<string, unknown>> }>;

export async function login(invocation: Invocation): Promise<number> {
  const file = fileIn(invocation);
  if (invocation.flags["token"] === true) {
    console.log((await current(file)).access_token);
    return 0;
  }
  const before = readLogin(file);
  const asked = textFlag(invocation.flags, "gateway") ?? before?.gateway;
  if (asked === undefined) throw new UsageError("login: --gateway URL is missing: where should this machine sign in?");
  const made = await signIn(gatewayOf(asked), invocation);
  write(file, made);
  if (before !== null) await revoke(before).catch(() => {}); // its person revokes it in the console
  await printSettings(made, file, invocation);
  return 0;
}

export async function logout(invocation: Invocation): Promise<number> {
  const file = fileIn(invocation);
  const known = readLogin(file);
  if (known === null) throw new CommandError("this machine is not signed in");
  const told = await revoke(known).then(
    () => true,
    () => false,
  );
  rmSync(file, { force: true });
  if (invocation.flags["json"] === true) console.log(JSON.stringify({ gateway: known.gateway, revoked: told }));
  else if (told) console.log(`Signed out of ${known.gateway}. The token is void.`);
  else console.error(`${known.gateway} could not be told: revoke this machine on its API key page.`);
  return told ? 0 : 1;
}

/** Waits for a person's approval. Throws CommandError where there is none. */
async function signIn(gateway: string, { flags }: Invocation): Promise<Login> {
  const { body: described } = await ask(gateway, `${gateway}/.well-known/oauth-authorization-server`);
  const at = (name: string, path: string): string => {
    const given = described[name];
    const isOwn = typeof given === "string" && URL.parse(given)?.origin === new URL(gateway).origin;
    return isOwn ? given : `${gateway}${path}`;
  };
  const endpoints: Endpoints = {
    gateway,
    token_endpoint: at("token_endpoint", "/oauth/token"),
    revocation_endpoint: at("revocation_endpoint", "/oauth/revoke"),
  };
  const machine = textFlag(flags, "name") ?? hostname();
  const form = { client_name: "tollgate login", machine };
  const { body: begun } = await ask(gateway, at("device_authorization_endpoint", "/oauth/device_authorization"), form);
  const [deviceCode, userCode, page] = [begun["device_code"], begun["user_code"], begun["verification_uri"]].map(
    lineOf,
  );
  if (!deviceCode || !userCode || !page) throw new CommandError(`${gateway} is no gateway that machines sign in to`);
  const complete = lineOf(begun["verification_uri_complete"]) || page;
  if (flags["json"] === true) {
    console.log(JSON.stringify({ user_code: userCode, verification_uri: page, verification_uri_complete: complete }));
  } else console.log(`Open ${complete}\nand approve the code ${userCode}. Waiting ...`);
  const until = systemClock.monotonic() + (Number(begun["expires_in"]) || 600) * 1_000;
  let seconds = Number(begun["interval"]) || 5;
  while (systemClock.monotonic() < until) {
    await Bun.sleep(Math.max(1, seconds) * 1_000);
    const polled = { grant_type: deviceGrant, device_code: deviceCode };
    // A gateway that restarts, or a network that is away for a moment, ends nothing.
    const { status, body } = await post(endpoints.token_endpoint, polled).catch((): Reply => ({ status: 0, body: {} }));
    if (status === 200) return loginOf(endpoints, body);
    const { error } = body;
    if (error === "slow_down") seconds += 5;
    else if (error === "access_denied") throw new CommandError("the sign-in was denied in the console");
    else if (error === "expired_token") break;
    else if (status !== 0 && status < 500 && error !== "authorization_pending") {
      throw new CommandError(`${gateway} answers the sign-in with ${status} ${lineOf(error)}`);
    }
  }
  throw new CommandError("nobody approved the sign-in in time: start again");
}

/** The machine's token, renewed where it is due. Processes do so one at a time: a token that renews works once. */
async function current(file: string): Promise<Login> {
  for (;;) {
    const known = readLogin(file);
    if (known === null) throw new CommandError("this machine is not signed in: tollgate login --gateway URL");
    if (systemClock.wall() < known.renew_at) return known;
    if (!lock(file)) {
      await Bun.sleep(100);
      continue;
    }
    try {
      if (readLogin(file)?.refresh_token !== known.refresh_token) continue;
      const form = { grant_type: "refresh_token", refresh_token: known.refresh_token };
      const { status, body } = await post(known.token_endpoint, form).catch((): Reply => ({ status: 0, body: {} }));
      if (status === 200) {
        write(file, loginOf(known, { email: known.email, ...body }));
      } else if (body["error"] === "invalid_grant") {
        throw new CommandError(`${known.gateway} ended this sign-in: tollgate login --gateway ${known.gateway}`);
      } else if (systemClock.wall() < known.expires_at)
        return known; // the next one tries again
      else throw new CommandError(`${known.gateway} does not renew the token now: it answers ${status || "nothing"}`);
    } finally {
      rmSync(`${file}.lock`, { force: true });
    }
  }
}

function lock(file: string): boolean {
  const path = `${file}.lock`;
  try {
    writeFileSync(path, "", { flag: "wx", mode: 0o600 });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    const since = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
    if (systemClock.wall() - since > lockStaleMs) rmSync(path, { force: true });
    return false;
  }
}

async function revoke({ revocation_endpoint, refresh_token }: Login): Promise<void> {
  const { status } = await post(revocation_endpoint, { token: refresh_token, token_type_hint: "refresh_token" });
  if (status !== 200) throw new CommandError(`the gateway answers ${status}`);
}

async function printSettings({ gateway, email, access_token }: Login, file: string, { flags }: Invocation) {
  const listed = await ask(gateway, `${gateway}/v1/models`, null, access_token);
  type Listed = { id?: unknown; context_length?: unknown; architecture?: { output_modalities?: unknown[] } };
  const models = (listed.body["data"] ?? []) as Listed[];
  const model = models.find(({ architecture }) => architecture?.output_modalities?.includes("text") ?? true);
  const [name, contextTokens] = [lineOf(model?.id) || "MODEL", Number(model?.context_length) || 196_608];
  const settings = agentSettings({ baseUrl: gateway, key: "$TOLLGATE_KEY", model: name, contextTokens });
  if (flags["json"] === true) {
    const of = settings.map(({ language: _, ...each }) => each);
    return console.log(JSON.stringify({ gateway, email, token_file: file, model: name, settings: of }));
  }
  console.log(`\nSigned in as ${email}. The token is in ${file}; in a shell it is\n`);
  console.log('  export TOLLGATE_KEY="$(tollgate login --token)"');
  for (const each of settings) {
    console.log(`\n# ${each.name}${each.file === null ? "" : `: ${each.file}`}\n${each.code}`);
  }
}

function loginOf(endpoints: Endpoints, body: Reply["body"]): Login {
  const { gateway, token_endpoint, revocation_endpoint } = endpoints;
  const [access_token, refresh_token, email] = [body["access_token"], body["refresh_token"], body["email"]].map(lineOf);
  if (!access_token || !refresh_token) throw new CommandError(`${gateway} gave no token that can be renewed`);
  const [now, lifeMs] = [systemClock.wall(), (Number(body["expires_in"]) || 3_600) * 1_000];
  const times = { expires_at: now + lifeMs, renew_at: now + Math.max(lifeMs / 2, lifeMs - 24 * hourMs) };
  return { gateway, email: email ?? "", access_token, refresh_token, ...times, token_endpoint, revocation_endpoint };
}

/** The answer of a gateway that must give one. */
async function ask(
  gateway: string,
  url: string,
  form: Readonly<Record<string, string>> | null = null,
  key: string | null = null,
): Promise<Reply> {
  const reply = await send(url, form, key).catch((error: Error) => {
    throw new CommandError(`${gateway} does not answer: ${error.message}`);
  });
  if (reply.status === 200) return reply;
  throw new CommandError(`${gateway} answers ${reply.status} at ${new URL(url).pathname}`);
}

const post = (url: string, form: Readonly<Record<string, string>>): Promise<Reply> => send(url, form, null);

/** No redirect is followed: what is sent are secrets. */
async function send(url: string, form: Readonly<Record<string, string>> | null, key: string | null): Promise<Reply> {
  const reply = await fetch(url, {
    method: form === null ? "GET" : "POST",
    ...(form === null ? {} : { body: new URLSearchParams(form) }),
    headers: { "user-agent": "tollgate-login", ...(key === null ? {} : { authorization: `Bearer ${key}` }) },
    redirect: "manual",
    signal: AbortSignal.timeout(answerMs),
  });
  const text = (await boundedText(reply, answerMaxBytes)) ?? "";
  try {
    const body: unknown = JSON.parse(text);
    return { status: reply.status, body: typeof body === "object" && body !== null ? { ...body } : {} };
  } catch {
    return { status: reply.status === 200 ? 502 : reply.status, body: {} };
  }
}

function gatewayOf(written: string): string {
  const url = URL.parse(written.includes("://") ? written : `https://${written}`);
  if (
    !/^https?:$/.test(url?.protocol ?? "") ||
    url === null ||
    url.username !== "" ||
    url.search !== "" ||
    url.hash !== ""
  ) {
    throw new UsageError(
      `login: --gateway must be an address such as https://ai.example.com, is ${JSON.stringify(written)}`,
    );
  }
  if (url.protocol === "http:" && !/^(localhost|127\.[\d.]+|\[::1\])$/.test(url.hostname)) {
    console.error(`${url.origin} is not encrypted: others on the network can read this machine's token.`);
  }
  return (url.origin + url.pathname).replace(/\/+(v1\/*)?$/, "");
}

/** What a server says, without what a terminal would obey. */
const lineOf = (text: unknown): string => (typeof text === "string" ? text.replace(/\p{C}/gu, "").slice(0, 500) : "");

const fileIn = ({ environment }: Invocation): string =>
  join(environment["XDG_CONFIG_HOME"] || join(homedir(), ".config"), "tollgate", "login.json");

function readLogin(file: string): Login | null {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as Login;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw new CommandError(`${file} cannot be read: ${(error as Error).message}`);
  }
}

/** Whole or not at all, and never open to others. */
function write(file: string, made: Login): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const next = `${file}.${process.pid}`;
  writeFileSync(next, JSON.stringify(made, null, 2), { mode: 0o600 });
  renameSync(next, file);
}
