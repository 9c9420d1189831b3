// Files of two gateways on one PostgreSQL that share a folder: what one takes the other reads, names and deletes.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import OpenAI, { toFile } from "openai";
import { temporaryFolder } from "../commands/program.ts";
import { runToEnd } from "../fixtures/children.ts";
import { GatewayProcess } from "../fixtures/gateway-process.ts";
import { ScriptedNode } from "../fixtures/node-process.ts";
import { noPostgres, startDatabases } from "../fixtures/postgres.ts";
import { nodeTable } from "../fixtures/stack.ts";

const timeLimit = 120_000;
const root = join(import.meta.dir, "../..");

describe.skipIf(noPostgres)("files of two gateways", () => {
  const folder = temporaryFolder();
  const opened = new AsyncDisposableStack();
  let node: ScriptedNode;
  let url: string;
  let gateways: readonly GatewayProcess[];
  const configOf = (name: string, files: string): string =>
    `${nodeTable(node, 8)}\n[ledger]\ngateway = "${name}"\n[files]\nfolder = "${join(folder.path, files)}"`;
  beforeAll(async () => {
    node = opened.use(await ScriptedNode.start());
    url = await opened.use(await startDatabases()).database("files");
    const start = async (name: string) =>
      opened.use(
        await GatewayProcess.start({
          config: configOf(name, "shared"),
          env: { TOLLGATE_DATABASE_URL: url },
          dataFolder: join(folder.path, name),
        }),
      );
    gateways = [await start("first"), await start("second")];
  }, timeLimit);
  afterAll(async () => {
    await opened.disposeAsync();
    folder[Symbol.dispose]();
  }, timeLimit);

  /** What `doctor` says of files, from a gateway with this folder. */
  async function doctor(files: string): Promise<string[]> {
    const gateway = gateways[1]!;
    await gateway.configure(configOf("second", files));
    const words = ["doctor", "--config", join(gateway.folder, "tollgate.toml"), "--data", gateway.dataFolder, "--json"];
    const env = { ...process.env, TOLLGATE_DATABASE_URL: url };
    const { stdout } = await runToEnd([process.execPath, join(root, "src/main.ts"), ...words], { env });
    const { findings } = JSON.parse(stdout) as { findings: { what: string; level: string }[] };
    return findings.filter(({ what }) => what === "files").map(({ level }) => level);
  }

  test(
    "are read, named and deleted at either, and doctor sees a folder that is not shared",
    async () => {
      const account = await gateways[0]!.account();
      const [first, second] = gateways.map(
        (gateway) => new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: account.api_key, maxRetries: 0 }),
      );
      const file = await toFile(Buffer.from("the text of a file"), "a.txt");
      const made = await first!.files.create({ file, purpose: "user_data" });
      expect(await second!.files.retrieve(made.id)).toMatchObject({ id: made.id, bytes: 18 });
      expect(await (await second!.files.content(made.id)).text()).toBe("the text of a file");
      const marker = node.marker("text");
      const input: OpenAI.Responses.ResponseInput = [
        {
          role: "user",
          content: [
            { type: "input_text", text: `[[${marker}]]` },
            { type: "input_file", file_id: made.id },
          ],
        },
      ];
      expect((await second!.responses.create({ model: "core-3", input })).status).toBe("completed");
      expect(JSON.stringify((await node.request(marker)).body)).toContain("the text of a file");
      expect([await doctor("shared"), await doctor("own")]).toEqual([["ok"], ["problem"]]);
      await second!.files.delete(made.id);
      expect(await first!.files.retrieve(made.id).catch(({ status }: { status: number }) => status)).toBe(404);
      expect(await Array.fromAsync(first!.files.list())).toEqual([]);
      const names = readdirSync(join(folder.path, "shared"), { recursive: true, encoding: "utf8" });
      expect(names.filter((name) => name.includes("file-"))).toEqual([]);
    },
    timeLimit,
  );
});
