// The Grafana dashboard, queried as Grafana does: a real Prometheus scrapes a server, and every panel's expression must
// be valid and find something. Its form is checked for mistakes that Grafana accepts silently and draws wrongly.
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "../../src/http/free-port.ts";
import { chat, temporaryFolder } from "../commands/program.ts";
import { eventually } from "../fixtures/eventually.ts";
import { GatewayProcess } from "../fixtures/gateway-process.ts";
import { missing } from "../fixtures/optional.ts";

setDefaultTimeout(120_000);

type Place = Readonly<{ x: number; y: number; w: number; h: number }>;
type Target = Readonly<{ refId: string; expr: string; datasource: object }>;
type Panel = Readonly<{ id: number; type: string; title: string; gridPos: Place; targets?: readonly Target[] }>;
type Dashboard = Readonly<{
  panels: readonly Panel[];
  templating: { list: readonly { name: string; query: unknown }[] };
}>;

const dashboard = JSON.parse(
  readFileSync(join(import.meta.dir, "../../data/grafana-dashboard.json"), "utf8"),
) as Dashboard;
const targets = dashboard.panels.flatMap(({ title, targets = [] }) => targets.map((target) => ({ title, ...target })));

const overlap = (one: Place, other: Place): boolean =>
  one.x < other.x + other.w && other.x < one.x + one.w && one.y < other.y + other.h && other.y < one.y + one.h;

describe("the dashboard", () => {
  test("has panels beside each other, and not on each other", () => {
    for (const [index, { title, gridPos }] of dashboard.panels.entries()) {
      expect([title, gridPos.x + gridPos.w <= 24]).toEqual([title, true]);
      const covered = dashboard.panels.slice(index + 1).filter((other) => overlap(gridPos, other.gridPos));
      expect([title, covered.map((other) => other.title)]).toEqual([title, []]);
    }
  });

  test("asks the data source that is chosen, and for variables that it has", () => {
    const own = ["__rate_interval", ...dashboard.templating.list.map(({ name }) => name)];
    for (const { title, refId, expr, datasource } of targets) {
      expect([title, refId, datasource]).toEqual([title, refId, { type: "prometheus", uid: "${datasource}" }]);
      expect([...expr.matchAll(/\$(\w+)/g)].map(([, name]) => name!).filter((name) => !own.includes(name))).toEqual([]);
    }
    for (const { title, targets: asked = [] } of dashboard.panels)
      expect([title, new Set(asked.map(({ refId }) => refId)).size]).toEqual([title, asked.length]);
  });

  const prometheus = Bun.which("prometheus");
  test.skipIf(missing("prometheus", prometheus !== null, "it is in Debian's package prometheus"))(
    "finds in a real Prometheus all that a server tells",
    async () => {
      await using gateway = await GatewayProcess.start({
        config: '[backups]\nevery_hours = 1\n[[webhooks]]\nname = "ops"\nurl = "http://127.0.0.1:9"\n',
      });
      await using server = await Prometheus.start(prometheus!, gateway.url);
      const account = await gateway.account();
      await (await chat(gateway.url, account.api_key, { stream: true })).text();
      await (await chat(gateway.url, "sk-tg-wrong", {})).text();
      const scraped = new Set(
        [...(await (await fetch(`${gateway.url}/metrics`)).text()).matchAll(/^(tollgate_\w+)/gm)].map(
          ([, name]) => name!,
        ),
      );
      const said = (expression: string) =>
        [...expression.matchAll(/tollgate_\w+/g)].every(([name]) => scraped.has(name));
      const shown = targets.filter(({ expr }) => said(expr));
      expect(shown.length).toBeGreaterThan(targets.length / 2);
      for (const { title, expr } of targets) {
        const found = () => server.ask(expr.replaceAll("$__rate_interval", "1m").replaceAll("$instance", ".*"));
        if (!said(expr)) expect([title, expr, await found()]).toEqual([title, expr, expect.any(Number)]);
        else await eventually(`${title}: ${expr} finds something`, async () => (await found()) > 0, 30_000);
      }
    },
  );
});

/** A Prometheus that scrapes one server, twice a second. */
class Prometheus implements AsyncDisposable {
  private constructor(
    readonly url: string,
    readonly child: Bun.Subprocess,
    readonly folder: ReturnType<typeof temporaryFolder>,
  ) {}

  static async start(program: string, scraped: string): Promise<Prometheus> {
    const folder = temporaryFolder();
    const config = join(folder.path, "prometheus.yml");
    const address = `127.0.0.1:${freePort("127.0.0.1")}`;
    const job = { job_name: "tollgate", static_configs: [{ targets: [new URL(scraped).host] }] };
    writeFileSync(config, JSON.stringify({ global: { scrape_interval: "500ms" }, scrape_configs: [job] }));
    const flags = [
      `--config.file=${config}`,
      `--storage.tsdb.path=${folder.path}/data`,
      `--web.listen-address=${address}`,
    ];
    const child = Bun.spawn([program, ...flags, "--log.level=error"], { stdout: "ignore", stderr: "inherit" });
    const server = new Prometheus(`http://${address}`, child, folder);
    await eventually(
      "prometheus is ready",
      async () => (await fetch(`${server.url}/-/ready`).catch(() => null))?.ok === true,
    );
    return server;
  }

  /** How many series the expression finds now. Throws if it is not one. */
  async ask(expression: string): Promise<number> {
    const reply = await fetch(`${this.url}/api/v1/query?${new URLSearchParams({ query: expression })}`);
    const body = (await reply.json()) as { data?: { result: unknown[] }; error?: string };
    if (body.data === undefined) throw new Error(`${expression}: ${body.error}`);
    return body.data.result.length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.child.kill("SIGKILL");
    await this.child.exited;
    this.folder[Symbol.dispose]();
  }
}
