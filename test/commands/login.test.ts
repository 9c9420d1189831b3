// tollgate login and logout on a colleague's machine, against a running server.
import { expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { linesOf } from "../fixtures/lines.ts";
import { Person } from "../fixtures/machine.ts";
import { run, Server, temporaryFolder, tollgate } from "./program.ts";

setDefaultTimeout(120_000);

type Login = { access_token: string; refresh_token: string; renew_at: number };

/** A server with somebody's account, and her machine. */
async function started() {
  const folder = temporaryFolder();
  const data = ["--data", join(folder.path, "data")];
  const server = await Server.start(["--port", "0", "--demo", ...data]);
  const email = "ada@example.com";
  await run(["accounts", "create", email, "--password", "long enough 1", "--credit", "9000000", ...data]);
  const ada = await Person.signedIn(server.url, email, "long enough 1");
  const variables = { XDG_CONFIG_HOME: join(folder.path, "config"), HOME: folder.path };
  const file = join(folder.path, "config/tollgate/login.json");
  return {
    server,
    ada,
    email,
    file,
    login: (): Login => JSON.parse(readFileSync(file, "utf8")) as Login,
    change: (more: object) =>
      writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, "utf8")), ...more })),
    tollgate: (...words: string[]) => run(words, { variables }),
    /** `login --json`, and what its person answers to the code. */
    async signIn(answer: (code: string) => Promise<unknown>) {
      const child = Bun.spawn([...tollgate, "login", "--gateway", `${server.url}/v1/`, "--name", "box", "--json"], {
        env: { PATH: process.env["PATH"], ...variables },
        stdout: "pipe",
        stderr: "pipe",
      });
      const lines: Record<string, any>[] = [];
      for await (const line of linesOf(child.stdout)) {
        if (lines.push(JSON.parse(line)) === 1) await answer(lines[0]!["user_code"]);
      }
      return { code: await child.exited, lines, stderr: await new Response(child.stderr).text() };
    },
    keys: async () => JSON.parse((await run(["keys", "list", email, "--json", ...data])).stdout) as { name: string }[],
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      folder[Symbol.dispose]();
    },
  };
}

test("signs in, keeps the token for its user alone, prints settings that work, and signs out", async () => {
  await using machine = await started();
  const { server, ada, file } = machine;
  const approve = (code: string) => ada.approve(server.url, { user_code: code }, "box");
  const { code, lines } = await machine.signIn(approve);
  expect([code, lines.length]).toEqual([0, 2]);
  expect(lines[0]!["verification_uri_complete"]).toBe(`${server.url}/device?user_code=${lines[0]!["user_code"]}`);
  expect(lines[1]).toMatchObject({ gateway: server.url, email: machine.email, token_file: file });
  const settings = lines[1]!["settings"] as { name: string; code: string }[];
  expect(settings.map(({ name }) => name)).toEqual(["Claude Code", "aider", "Codex", "opencode", "Continue"]);
  for (const { code } of settings) expect(code).toContain(server.url);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const { stdout: token } = await machine.tollgate("login", "--token");
  expect(token).toBe(machine.login().access_token);
  const asked = await fetch(`${server.url}/v1/models`, { headers: { authorization: `Bearer ${token}` } });
  expect(asked.status).toBe(200);

  // Another sign-in takes its place.
  expect((await machine.signIn(approve)).code).toBe(0);
  expect((await machine.keys()).map(({ name }) => name)).toEqual(["default", "box 2"]);
  expect(await machine.tollgate("logout")).toMatchObject({ code: 0 });
  expect((await machine.keys()).map(({ name }) => name)).toEqual(["default"]);
  expect((await machine.tollgate("logout")).stderr).toContain("not signed in");
  expect((await machine.tollgate("login", "--token")).stderr).toContain("not signed in");
});

test("several shells renew the token once; where it is ended, the person is told", async () => {
  await using machine = await started();
  await machine.signIn((code) => machine.ada.approve(machine.server.url, { user_code: code }, "box"));
  const before = machine.login();
  machine.change({ renew_at: 0 });
  const tokens = await Promise.all([1, 2, 3].map(() => machine.tollgate("login", "--token")));
  expect(new Set(tokens.map(({ stdout }) => stdout))).toEqual(new Set([machine.login().access_token]));
  expect(machine.login().access_token).not.toBe(before.access_token);
  // Somebody has a copy of the file, and uses it when the machine has renewed again.
  machine.change({ renew_at: 0 });
  expect((await machine.tollgate("login", "--token")).code).toBe(0);
  machine.change({ renew_at: 0, refresh_token: before.refresh_token });
  const copied = await machine.tollgate("login", "--token");
  expect([copied.code, copied.stderr]).toEqual([1, expect.stringContaining("ended this sign-in")]);
  expect((await machine.keys()).map(({ name }) => name)).toEqual(["default"]);
  // A gateway that is away: the token goes on as long as it is valid.
  machine.change({ token_endpoint: "http://127.0.0.1:9/oauth/token" });
  expect((await machine.tollgate("login", "--token")).stdout).toBe(machine.login().access_token);
});

test("says why there is no sign-in", async () => {
  await using machine = await started();
  const denied = await machine.signIn((code) =>
    machine.ada.post(machine.server.url, "/device/deny", { user_code: code }),
  );
  expect([denied.code, denied.stderr]).toEqual([1, expect.stringContaining("denied in the console")]);
  const wrong: [string[], number, string][] = [
    [["login"], 2, "--gateway URL is missing"],
    [["login", "--gateway", "ftp://x"], 2, "must be an address"],
    [["login", "--gateway", "https://a@b.example"], 2, "must be an address"],
    [["login", "--gateway", "http://127.0.0.1:9"], 1, "does not answer"],
  ];
  for (const [words, code, message] of wrong) {
    expect(await machine.tollgate(...words)).toMatchObject({ code, stderr: expect.stringContaining(message) });
  }
});
