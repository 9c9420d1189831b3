// The image, built from its Dockerfile and run as a container: it serves as a user without rights, reports its health,
// stops when told to and finds its data again.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "../../src/http/free-port.ts";
import { chat, temporaryFolder } from "../commands/program.ts";
import { eventually } from "../fixtures/eventually.ts";
import { Containers, containerTools } from "./containers.ts";
import { withoutPackaging } from "./packaging.ts";

setDefaultTimeout(300_000);

const root = join(import.meta.dir, "../..");
const skipped = withoutPackaging("building the image", containerTools);

describe.skipIf(skipped)("the image", () => {
  const folder = temporaryFolder();
  const containers = new Containers(folder.path);
  const name = `tollgate-${process.pid}`;
  let url: string;

  beforeAll(async () => {
    containers.build(join(root, "data/ops/Dockerfile"), root, "tollgate");
    const port = freePort("127.0.0.1");
    url = `http://127.0.0.1:${port}`;
    containers.start(name, "tollgate", { TOLLGATE_PORT: String(port) }, "state:/var/lib/tollgate");
    await ready();
  });
  afterAll(() => {
    containers.podman("rm", "--force", "--ignore", "--time=1", name);
    folder[Symbol.dispose]();
  });

  const ready = () =>
    eventually("it is ready", async () => (await fetch(`${url}/readyz`).catch(() => null))?.status === 200);
  /** podman writes down what a container says a moment later. */
  const key = () =>
    eventually(
      "the log has the key",
      async () => /API key +(sk-tg-\S+)/.exec(containers.podman("logs", name))?.[1] ?? null,
    );
  const status = () => {
    const process = containers.podman("inspect", "--format={{.State.Pid}}", name);
    const lines = readFileSync(`/proc/${process}/status`, "utf8").matchAll(/^(\w+):\t(.*)$/gm);
    return Object.fromEntries([...lines].map(([, field, value]) => [field!, value!]));
  };

  test("is small, and holds no shell", () => {
    const mib = Number(containers.podman("image", "inspect", "--format={{.Size}}", "tollgate")) / 1024 ** 2;
    console.log(`the image has ${Math.round(mib)} MiB`);
    expect(mib).toBeLessThan(200);
    expect(() => containers.podman("exec", name, "sh", "-c", "true")).toThrow("not found");
  });

  test("answers a request with the key that its log has", async () => {
    const reply = await chat(url, await key(), { stream: true });
    expect([reply.status, await reply.text()]).toEqual([200, expect.stringMatching(/data: \[DONE\]\n\n$/)]);
  });

  test("runs as nobody in particular and may do nothing", () => {
    expect(status()).toMatchObject({
      Uid: "65532\t65532\t65532\t65532",
      CapEff: "0000000000000000",
      CapBnd: "0000000000000000",
      NoNewPrivs: "1",
      Seccomp: "2",
    });
  });

  test("tells its health", () => {
    expect(containers.podman("healthcheck", "run", name)).toBe("");
  });

  test("stops in time when told, and finds its accounts again", async () => {
    const known = await key();
    containers.podman("stop", "--time=45", name); // and not killed after that
    expect(containers.podman("inspect", "--format={{.State.ExitCode}}", name)).toBe("0");
    containers.podman("start", name);
    await ready();
    expect((await chat(url, known, {})).status).toBe(200);
    expect(containers.podman("exec", name, "/usr/local/bin/tollgate", "usage", "operator@localhost")).toContain(
      "core-3",
    );
  });
});
