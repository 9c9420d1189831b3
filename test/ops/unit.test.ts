// The systemd unit under a real systemd, in a container that boots: it serves with every restriction in force, reloads,
// comes back after a kill, and stops cleanly.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, cpSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "../../src/http/free-port.ts";
import { chat, run, temporaryFolder } from "../commands/program.ts";
import { eventually } from "../fixtures/eventually.ts";
import { tryRequests } from "./every-command.ts";
import { withoutPackaging } from "./packaging.ts";

setDefaultTimeout(300_000);

const root = join(import.meta.dir, "../..");
const skipped = withoutPackaging("booting a system with the unit", [
  "mmdebstrap",
  "systemd-nspawn",
  "nsenter",
  "pgrep",
]);

describe.skipIf(skipped)("the unit under systemd", () => {
  const folder = temporaryFolder();
  const machine = join(folder.path, "root");
  const url = `http://127.0.0.1:${freePort("127.0.0.1")}`;
  const configuration = `[server]\nport = ${new URL(url).port}\n`;
  const bootLimitMs = 60_000;
  let container: Bun.Subprocess;

  beforeAll(async () => {
    await perform([process.execPath, join(root, "src/build.ts")]);
    await perform(["mmdebstrap", "--quiet", "--variant=minbase", "--include=systemd,dbus", "bookworm", machine]);
    cpSync(join(root, "dist/tollgate"), join(machine, "usr/local/bin/tollgate"));
    chmodSync(join(machine, "usr/local/bin/tollgate"), 0o755);
    cpSync(join(root, "data/ops/tollgate.service"), join(machine, "etc/systemd/system/tollgate.service"));
    const wanted = join(machine, "etc/systemd/system/multi-user.target.wants");
    mkdirSync(wanted, { recursive: true });
    symlinkSync("../tollgate.service", join(wanted, "tollgate.service")); // systemctl enable
    mkdirSync(join(machine, "etc/tollgate"));
    writeFileSync(join(machine, "etc/tollgate/tollgate.toml"), configuration);
    const booting = ["systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--boot", "-D", machine];
    container = Bun.spawn(booting, { stdin: "ignore", stdout: "ignore", stderr: "inherit" });
    await ready();
  });
  afterAll(async () => {
    container.kill("SIGTERM"); // shuts the system down
    await container.exited;
    folder[Symbol.dispose]();
  });

  const ready = () =>
    eventually("it is ready", async () => (await fetch(`${url}/readyz`).catch(() => null))?.ok === true, bootLimitMs);
  /** What a command in the system says. */
  const inside = async (...command: [string, ...string[]]): Promise<string> => {
    const init = await perform(["pgrep", "--parent", String(container.pid), "--full", "systemd"]);
    return perform(["nsenter", `--target=${init}`, "--all", ...command]);
  };
  const property = async (name: string): Promise<string> =>
    inside("systemctl", "show", "tollgate", "--value", `--property=${name}`);
  const journal = () => inside("journalctl", "--no-pager", "--output=cat", "--unit=tollgate");
  const key = () =>
    eventually("the log has the key", async () => /API key +(sk-tg-\S+)/.exec(await journal())?.[1] ?? null);

  test("serves, also what it does in processes of its own, as a user without rights", async () => {
    await tryRequests(url, await key());
    const status = await inside("cat", `/proc/${await property("MainPID")}/status`);
    expect(status).not.toMatch(/^Uid:\t0/m);
    expect(status).toMatch(/^CapBnd:\t0+$/m);
    expect(status).toMatch(/^NoNewPrivs:\t1$/m);
    expect(status).toMatch(/^Seccomp:\t2$/m);
  });

  test("lets the operator's commands in", async () => {
    const tollgate = ["env", "TOLLGATE_DATA=/var/lib/tollgate", "tollgate"] as const;
    expect(await inside(...tollgate, "accounts", "list")).toContain("operator@localhost");
    expect(await inside(...tollgate, "doctor")).not.toContain("problem ");
  });

  test("applies a changed configuration, and refuses a wrong one and serves on", async () => {
    const file = join(machine, "etc/tollgate/tollgate.toml");
    writeFileSync(file, `${configuration}[queue]\nmax_wait_seconds = 5\n`);
    await inside("systemctl", "reload", "tollgate");
    writeFileSync(file, "[serve]\n");
    await expect(inside("systemctl", "reload", "tollgate")).rejects.toThrow("tollgate");
    writeFileSync(file, configuration);
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
  });

  test("comes back after a kill with its accounts, and stops in order", async () => {
    const known = await key();
    await inside("systemctl", "kill", "--signal=SIGKILL", "tollgate");
    await eventually("it was started again", async () => (await property("NRestarts")) === "1", bootLimitMs);
    await ready();
    expect((await chat(url, known, {})).status).toBe(200);
    await inside("systemctl", "stop", "tollgate");
    expect([await property("Result"), await property("ExecMainStatus")]).toEqual(["success", "0"]);
  });
});

async function perform([program, ...words]: readonly [string, ...string[]]): Promise<string> {
  const { code, stdout, stderr } = await run(words, { program: [program], cwd: root });
  if (code !== 0) throw new Error(`${program} ${words.join(" ")}: ${stdout}${stderr}`);
  return stdout;
}
