// dist/tollgate alone in an empty folder: nothing of the source tree is needed. `npm run build` makes it; without it
// these tests are skipped, and say so. test/ops tries the binaries for other machines in the same way.
import { setDefaultTimeout, test } from "bun:test";
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { tryBinary } from "../ops/every-command.ts";
import { temporaryFolder } from "./program.ts";

setDefaultTimeout(120_000); // the binary has 100 MiB and is copied

const built = join(import.meta.dir, "../../dist/tollgate");
const source = join(import.meta.dir, "../../src");
const reason = whyNot();
if (reason !== null) console.log(`dist/tollgate is not tested: ${reason}`);

/** Starts a program for which the sources and packages are not there; nothing where the system does not let us. */
const hiding = 'mount -t tmpfs none "$1"; mount -t tmpfs none "$2"; shift 2; exec "$@"';
const hidden = ["unshare", "--mount", "sh", "-ec", hiding, "sh", source, join(source, "../node_modules")];
const canHide = Bun.which("unshare") !== null && Bun.spawnSync([...hidden, "true"]).success;
const withoutSources = canHide ? hidden : [];
if (!canHide) console.log("dist/tollgate is tested beside its sources: they cannot be hidden from it here");

function whyNot(): string | null {
  if (!existsSync(built)) return "it is not built; npm run build makes it";
  const builtAt = statSync(built).mtimeMs;
  const newer = [...new Bun.Glob("**/*.ts").scanSync(source)].find(
    (file) => statSync(join(source, file)).mtimeMs > builtAt,
  );
  return newer === undefined ? null : `src/${newer} is newer; npm run build makes it anew`;
}

test.skipIf(reason !== null)("the binary serves, streams and does every command away from its source", async () => {
  using folder = temporaryFolder();
  await tryBinary(built, folder.path, (binary) => [...withoutSources, binary]);
});
