// The baseline: nginx as a plain reverse proxy without buffering, from bench/nginx.conf.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { processFamily } from "./cpu-time.ts";
import { clientDialects } from "./dialect.ts";
import { freePort } from "./free-port.ts";
import { startProcess } from "./process.ts";
import type { Subject } from "./subject.ts";

/** Why there is no nginx baseline on this machine, or null when there is one. */
export function nginxMissing(): string | null {
  return nginxPath() === null ? "nginx is not installed (Debian: apt-get install nginx-light)" : null;
}

/** "nginx 1.22.1", for the results. */
export function nginxVersion(): string {
  const path = nginxPath();
  if (path === null) return "no nginx";
  const output = Bun.spawnSync([path, "-v"]).stderr.toString();
  return `nginx ${/nginx\/(\S+)/.exec(output)?.[1] ?? "of unknown version"}`;
}

/** Debian keeps it in /usr/sbin, which is not in every user's PATH. */
function nginxPath(): string | null {
  return Bun.which("nginx", { PATH: `${process.env["PATH"] ?? ""}:/usr/sbin:/usr/local/sbin` });
}

/** Starts nginx in front of the nodes, in a folder of its own. Throws where it is missing. */
export async function startNginx(...nodePorts: readonly number[]): Promise<Subject> {
  const path = nginxPath();
  if (path === null) throw new Error("nginx is not installed");
  const folder = mkdtempSync(join(tmpdir(), "bench-nginx-"));
  const port = freePort();
  const NODES = nodePorts.map((nodePort) => `server 127.0.0.1:${nodePort};`).join(" ");
  const values: Record<string, string> = { PORT: `${port}`, NODES, FOLDER: folder };
  const template = readFileSync(`${import.meta.dir}/nginx.conf`, "utf8");
  const file = join(folder, "nginx.conf");
  writeFileSync(
    file,
    template.replace(/\{\{(\w+)\}\}/g, (_all, name: string) => values[name] ?? ""),
  );
  const running = await startProcess({
    role: "proxy",
    command: [path, "-p", folder, "-c", file, "-e", "stderr"],
    ready: /start worker process \d+/,
  });
  return {
    name: "nginx",
    port,
    dialect: clientDialects.chat,
    keys: ["unused"],
    pids: processFamily(running.pid),
    async stop() {
      await running.stop();
      rmSync(folder, { recursive: true });
    },
  };
}
