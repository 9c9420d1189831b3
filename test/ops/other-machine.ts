// Another machine on this one: a folder with the C library of its architecture, and nothing else, as the root of the file
// system. The processor of another architecture is qemu's, also for the children that a program starts: the kernel is told
// in a user namespace of our own, so that this machine stays as it is.
import { mkdirSync, renameSync, symlinkSync } from "node:fs";
import { join } from "node:path";

export type Architecture = "amd64" | "arm64";
export type Libc = "glibc" | "musl";

/** Programs that must be there. */
export const toolsOf = (architecture: Architecture, libc: Libc): string[] => [
  "mmdebstrap",
  "unshare",
  ...(architecture === "arm64" ? ["qemu-aarch64-static"] : []),
  ...(libc === "musl" ? ["python3"] : []),
];

/** As the kernel's binfmt_misc wants it: a 64-bit little-endian ELF program of machine 183, and who runs it (F: opened now). */
const arm64Programs =
  String.raw`:arm64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:` +
  String.raw`\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:`;

/** `sh -c` ROOT FOLDER REGISTRATION COMMAND...: the folder is at its own path there too. */
const entering = `
mkdir -p "$1/proc" "$1/dev" "$1$2"
mount --rbind /proc "$1/proc"
mount --rbind /dev "$1/dev"
mount --bind "$2" "$1$2"
if [ -n "$3" ]; then
  mount -t binfmt_misc none "$1/proc/sys/fs/binfmt_misc"
  printf %s "$3" >"$1/proc/sys/fs/binfmt_misc/register"
fi
root=$1 folder=$2
shift 3
exec unshare --root="$root" --wd="$folder" "$@"
`;

/** Makes the root of the machine in the folder `root`, which is not there yet. */
export function makeMachine(root: string, architecture: Architecture, libc: Libc): void {
  // Bun's programs for musl need a newer one (1.2.5) than Debian 12 has
  const [suite, packages] = libc === "glibc" ? ["bookworm", "libc6"] : ["trixie", "musl"];
  const extract = ["--quiet", "--variant=extract", `--architectures=${architecture}`, `--include=${packages}`];
  mkdirSync(root);
  perform(["mmdebstrap", ...extract, suite, root], root);
  if (libc === "musl") addStandardLibrary(root, architecture === "arm64" ? "aarch64" : "x86_64");
}

/** C++'s library for musl, which Debian has not: the one that numpy brings to Alpine's users. */
function addStandardLibrary(root: string, processor: string): void {
  symlinkSync("usr/lib", join(root, "lib")); // which its package usrmerge would make
  const wheels = join(root, "wheels");
  const folder = join(root, `usr/lib/${processor}-linux-musl`);
  const platform = ["--platform", `musllinux_1_2_${processor}`, "--python-version", "3.12", "--only-binary", ":all:"];
  perform(
    ["python3", "-m", "pip", "download", "--quiet", "--no-deps", ...platform, "-d", wheels, "numpy==2.5.5"],
    root,
  );
  perform(["sh", "-ec", "python3 -m zipfile -e wheels/*.whl wheels"], root);
  for (const file of new Bun.Glob("wheels/numpy.libs/lib{stdc++,gcc_s}-*").scanSync(root)) {
    const name = file.split("/").at(-1)!;
    renameSync(join(root, file), join(folder, name));
    symlinkSync(name, join(folder, name.startsWith("libgcc") ? "libgcc_s.so.1" : "libstdc++.so.6"));
  }
}

/** What starts a program on the machine; of this one it sees `folder` alone, and the network. */
export function onMachine(root: string, folder: string, architecture: Architecture): string[] {
  mkdirSync(join(root, folder), { recursive: true });
  const registration = architecture === "arm64" ? `${arm64Programs}${Bun.which("qemu-aarch64-static")}:F` : "";
  const own = ["unshare", "--user", "--map-root-user", "--mount"];
  return [...own, "sh", "-euc", entering, "sh", root, folder, registration];
}

function perform(command: readonly string[], cwd: string): void {
  const { success, stderr } = Bun.spawnSync([...command], { cwd });
  if (!success) throw new Error(`${command.join(" ")}: ${stderr.toString()}`);
}
