// A new machine: Debian with Node, npm and nothing else (no git, no curl, no C compiler), and a clone of the
// repository. The README's first steps must work there.
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { chat, run, Server, temporaryFolder } from "../commands/program.ts";
import { withoutPackaging } from "./packaging.ts";

setDefaultTimeout(600_000);

const root = join(import.meta.dir, "../..");

/** `sh -c` ROOT COMMAND...: in the clone there. Processes of the machine end with the first one. */
const entering = `
mount -t proc proc "$1/proc"
mount --rbind /dev "$1/dev"
root=$1
shift
exec unshare --root="$root" --wd=/srv/tollgate "$@"
`;

describe.each(["bookworm", "trixie"])("on a new machine with Debian's %s", (suite) => {
  test.skipIf(withoutPackaging(`installing on Debian's ${suite}`, ["mmdebstrap", "unshare", "git"]))(
    "npm install and npm start serve a first request",
    async () => {
      using folder = temporaryFolder();
      const machine = join(folder.path, "root");
      const packages = "--include=nodejs,npm,ca-certificates";
      await perform(["mmdebstrap", "--quiet", "--variant=minbase", packages, suite, machine]);
      await perform(["git", "clone", "--quiet", root, join(machine, "srv/tollgate")]);
      // names are resolved and certificates trusted as here; all else is the machine's own
      copyFileSync("/etc/resolv.conf", join(machine, "etc/resolv.conf"));
      const certificates = "etc/ssl/certs/ca-certificates.crt";
      copyFileSync(`/${certificates}`, join(machine, certificates));
      const variables = {
        PATH: "/usr/bin:/usr/sbin:/bin:/sbin",
        HOME: "/root",
        NODE_EXTRA_CA_CERTS: `/${certificates}`,
      };
      const own = ["unshare", "--mount", "--pid", "--fork", "--kill-child"];
      const program = [...own, "sh", "-euc", entering, "sh", machine];

      const began = performance.now();
      expect(await run(["npm", "install", "--omit=dev"], { program, variables })).toMatchObject({ code: 0 });
      const installed = performance.now();
      const starting = ["sh", "-c", 'exec npm start -- "$@"']; // in place of `tollgate serve`
      await using server = await Server.start(["--port", "0"], { program: [...program, ...starting], variables });
      const seconds = (from: number, to: number) => ((to - from) / 1000).toFixed(1);
      console.log(
        `${suite}: npm install ${seconds(began, installed)} s, start ${seconds(installed, performance.now())} s`,
      );
      const key = /API key +(sk-tg-\S+)/.exec(server.stdout)![1]!;
      const reply = await chat(server.url, key, { stream: true });
      expect([reply.status, await reply.text()]).toEqual([200, expect.stringMatching(/data: \[DONE\]\n\n$/)]);
    },
  );
});

async function perform([program, ...words]: readonly [string, ...string[]]): Promise<void> {
  const { code, stderr } = await run(words, { program: [program] });
  if (code !== 0) throw new Error(`${program} ${words.join(" ")}: ${stderr}`);
}
