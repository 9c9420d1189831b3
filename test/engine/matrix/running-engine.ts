// An engine of the matrix as a process, with what it stands before: started, asked, killed and started again.
import { mkdirSync, openSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { eventually } from "../../fixtures/eventually.ts";
import { type EngineName, type EngineRecipe, engines, enginesFolder, readyLimitMs } from "./engines.ts";

export const modelName = "tiny-chat";

/** What runs is ended with this process, however that ends. */
const groups = new Set<number>();
process.once("exit", () => groups.forEach(endGroup));
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));

function endGroup(pid: number): void {
  groups.delete(pid);
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // it has ended
  }
}

export class RunningEngine implements AsyncDisposable {
  readonly recipe: EngineRecipe;
  #process: Bun.Subprocess | null = null;
  #serves = modelName;

  private constructor(
    readonly name: EngineName,
    readonly port: number,
    readonly behind: RunningEngine | null,
  ) {
    this.recipe = engines[name];
  }

  static async start(name: EngineName): Promise<RunningEngine> {
    const { behind } = engines[name];
    const engine = new RunningEngine(name, await freePort(), behind === undefined ? null : await this.start(behind));
    await engine.#start();
    return engine;
  }

  /** One that somebody else started on this port: it is asked, and never ended. */
  static at(name: EngineName, port: number): RunningEngine {
    return new RunningEngine(name, port, null);
  }

  async #start(): Promise<void> {
    const start = {
      port: this.port,
      serves: this.#serves,
      behindPort: this.behind?.port ?? 0,
      sparePort: await freePort(),
    };
    const own = this.recipe.env?.(start);
    mkdirSync(join(enginesFolder, "run"), { recursive: true });
    const log = openSync(join(enginesFolder, "run", `${this.name}.log`), "w");
    const offline = { HF_HUB_OFFLINE: "1", TRANSFORMERS_OFFLINE: "1", DO_NOT_TRACK: "1" };
    const child = Bun.spawn([...this.recipe.command(start)], {
      env: { ...process.env, ...offline, ...own },
      stdin: "ignore",
      stdout: log,
      stderr: log,
      detached: true, // a group of its own: some engines have children that outlive them
    });
    this.#process = child;
    groups.add(child.pid);
    await eventually(
      `${this.name} takes requests`,
      async () => {
        if (child.exitCode !== null)
          throw new Error(`${this.name} ended with ${child.exitCode}: see run/${this.name}.log`);
        return (await this.#get(this.recipe.readyPath))?.ok ?? false;
      },
      readyLimitMs,
    );
    this.recipe.load?.(start);
  }

  async #get(path: string): Promise<Response | null> {
    return await fetch(`http://127.0.0.1:${this.port}${path}`, { signal: AbortSignal.timeout(10_000) }).catch(
      () => null,
    );
  }

  async isUp(): Promise<boolean> {
    return (await this.#get("/v1/models")) !== null;
  }

  /** Null where it does not tell. */
  async isIdle(): Promise<boolean | null> {
    const { running } = this.recipe;
    if (running === undefined) return null;
    const reply = await this.#get(running.path);
    return reply === null || !reply.ok ? null : (await reply.text()).match(running.pattern) === null;
  }

  /** Kills it with all that it started, in the middle of what it does. */
  async kill(): Promise<void> {
    const child = this.#process;
    this.#process = null;
    await this.behind?.kill();
    if (child === null) return;
    endGroup(child.pid);
    await child.exited;
  }

  async restart(serves = this.#serves): Promise<void> {
    await this.kill();
    await this.behind?.restart(serves);
    this.#serves = serves;
    await this.#start();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}
