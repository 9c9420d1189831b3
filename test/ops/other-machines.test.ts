// The binaries for other machines. Those for Linux run every command on an emulated processor, with the C library of
// another system and nothing else. Those for macOS cannot be run here: their form and signature are checked.
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { signAdHoc } from "../../src/build/mach-o-signature.ts";
import type { Target } from "../../src/build/targets.ts";
import { run, temporaryFolder } from "../commands/program.ts";
import { tryBinary } from "./every-command.ts";
import { readMachO } from "./mach-o.ts";
import { type Architecture, type Libc, makeMachine, onMachine, toolsOf } from "./other-machine.ts";
import { withoutPackaging } from "./packaging.ts";

setDefaultTimeout(300_000);

const root = join(import.meta.dir, "../..");

/** Builds for the target; the binary's path. */
async function build(target: Target): Promise<string> {
  const program = [process.execPath, "src/build.ts"];
  const { code, stderr } = await run(["--target", target], {
    program,
    cwd: root,
    variables: { HOME: process.env["HOME"]! },
  });
  if (code !== 0) throw new Error(stderr);
  return join(root, "dist", target.replace("bun-", "tollgate-"));
}

const linux: readonly (readonly [Target, Architecture, Libc])[] = [
  ["bun-linux-x64", "amd64", "glibc"],
  ["bun-linux-arm64", "arm64", "glibc"],
  ["bun-linux-x64-musl", "amd64", "musl"],
  ["bun-linux-arm64-musl", "arm64", "musl"],
];

describe.each(linux)("the binary for %s", (target, architecture, libc) => {
  test.skipIf(withoutPackaging(`building for ${target}`, toolsOf(architecture, libc)))(
    "serves, streams and does every command there",
    async () => {
      const built = await build(target);
      using machine = temporaryFolder();
      using folder = temporaryFolder();
      const machineRoot = join(machine.path, "root");
      makeMachine(machineRoot, architecture, libc);
      const entering = onMachine(machineRoot, folder.path, architecture);
      await tryBinary(built, folder.path, (binary) => [...entering, binary]);
    },
  );
});

describe("the binaries for macOS", () => {
  const skipped = withoutPackaging("building for macOS", []);

  test.skipIf(skipped).each(["arm64", "x64"] as const)(
    "the one for %s has a signature that fits",
    async (processor) => {
      const program = readFileSync(await build(`bun-darwin-${processor}`));
      expect(readMachO(program)).toEqual({
        processor,
        signedToItsEnd: true,
        pages: expect.any(Number),
        changedPages: 0,
      });
      program[program.length >> 1]! ^= 1;
      expect(readMachO(program).changedPages).toBe(1);
    },
  );

  /** As Bun alone makes it. */
  async function hello(folder: string, target: Target): Promise<Buffer> {
    const source = join(folder, "hello.ts");
    const outfile = join(folder, target);
    await Bun.write(source, 'console.log("hello");');
    await Bun.build({ entrypoints: [source], compile: { target, outfile } });
    return readFileSync(outfile);
  }

  test.skipIf(skipped)("need our signature on x64: Bun's own does not fit there", async () => {
    using folder = temporaryFolder();
    const { changedPages, signedToItsEnd } = readMachO(await hello(folder.path, "bun-darwin-x64"));
    expect({ fits: changedPages === 0 && signedToItsEnd }).toEqual({ fits: false });
  });

  test.skipIf(skipped)("are signed, byte for byte, as Bun signs what it compiles for arm64", async () => {
    using folder = temporaryFolder();
    const program = await hello(folder.path, "bun-darwin-arm64");
    expect(readMachO(program).changedPages).toBe(0);
    expect(Buffer.from(signAdHoc(program)).equals(program)).toBe(true);
  });
});
