// What an operator should look at now: each with a cause that the test makes.
import { expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:tls";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { dayMs } from "../../src/core/units.ts";
import { embeddedCatalog } from "../../src/core/catalog.ts";
import { alertIn } from "../../src/notices/letter.ts";
import { certificateEnd } from "../../src/notices/certificate.ts";
import { Alerts } from "../../src/server/alerts.ts";
import { diskLowBytes } from "../../src/server/notice-watch.ts";
import { Office } from "../account/office.ts";
import { runToEnd } from "../fixtures/children.ts";
import { missing } from "../fixtures/optional.ts";

const now = Date.UTC(2026, 10, 28, 12);
type Parts = ConstructorParameters<typeof Alerts>[0];

const down = { name: "gpu-1", url: "http://gpu-1/v1", health: "down", problem: "it hangs", drainedAt: null } as never;
const calm: Omit<Parts, "accounting"> = {
  nodes: () => [],
  modelsDown: () => [],
  mails: async () => null,
  requestLog: { nearLimit: async () => [] },
  catalog: embeddedCatalog(),
  backups: { freeBytes: () => diskLowBytes, schedule: { everyMs: dayMs, keep: 3 }, list: () => [] },
  notices: { findings: { violations: [], backupFailure: null } },
  baseUrl: "http://127.0.0.1:8400",
  clock: { wall: () => now, monotonic: () => 0 },
};

async function texts(change: Partial<Parts>): Promise<string[]> {
  const office = new Office();
  await office.accounts.create({ email: "ada@example.org" });
  const alerts = new Alerts({ ...calm, accounting: { office: office.units }, ...change });
  const list = await alerts.list();
  expect(alerts.latest).toBe(list);
  return list.map((alert) => alertIn("en", alert));
}

test("a calm house has none", async () => expect(await texts({})).toEqual([]));

test("each cause is one, in words; what an operator wished is none", async () => {
  const { backups } = calm;
  const backup = (madeAt: number) => ({ ...backups, list: () => [{ name: "a.db", bytes: 1, madeAt }] });
  const violation = { invariant: "I2", account: 7, detail: "too much" };
  const drained = { ...(down as object), drainedAt: 1 } as never;
  const cases: readonly (readonly [Partial<Parts>, string])[] = [
    [{ nodes: () => [down] }, "gpu-1 is down: it hangs"],
    [{ nodes: () => [drained] }, ""],
    [{ modelsDown: () => ["a", "b", "c", "d", "e", "f"] }, "No node serves a, b, c, d, e and 1 more right now"],
    [{ backups: { ...backups, freeBytes: () => 1_000_000_000 } }, "The disk of the data folder has "],
    [{ backups: backup(now - 3 * dayMs) }, "The newest backup is from November 25, 2026"],
    [{ backups: backup(now - dayMs) }, ""],
    [
      { notices: { findings: { violations: [], backupFailure: { at: 1, reason: "no room" } } } },
      "No backup was made: no room",
    ],
    [
      { notices: { findings: { violations: [violation as never], backupFailure: null } } },
      "The ledger contradicts itself: I2, account 7: too much",
    ],
    [
      { requestLog: { nearLimit: async () => [{ account: 1, plan: "free", used: 1_000 }] } },
      `ada@example.org has used ${Math.floor(100_000 / embeddedCatalog().plans["free"]!.tokensPerDay)}% of today’s allowance`,
    ],
  ];
  for (const [change, wanted] of cases) {
    const found = await texts(change);
    expect([found.length, found.join().slice(0, wanted.length)]).toEqual([wanted === "" ? 0 : 1, wanted]);
  }
});

test("mails say it in the reader's language", () => {
  const models = { kind: "model", values: { models: "a, b", others: 1 } };
  expect(alertIn("de", models)).toBe("Kein Knoten bedient zurzeit a, b und 1 weiteres Modell");
  expect(alertIn("zh", { kind: "old_backup", values: { day: "2026-11-25" } })).toBe("最近一次备份是 2026年11月25日");
});

const withoutOpenssl = missing("openssl", Bun.which("openssl") !== null, "install it");

test.skipIf(withoutOpenssl)(
  "a certificate that ends soon is one, of a real server; what shows none is none",
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "tollgate-alerts-"));
    const [key, cert] = [join(folder, "key.pem"), join(folder, "certificate.pem")];
    const subject = ["-subj", "/CN=localhost", "-days", "3", "-nodes", "-keyout", key, "-out", cert];
    const made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", ...subject];
    expect(await runToEnd(made)).toMatchObject({ code: 0 });
    const server = createServer({ key: readFileSync(key), cert: readFileSync(cert) });
    await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
    const { port } = server.address() as { port: number };
    const ends = (await certificateEnd("127.0.0.1", port))!;
    expect(Math.abs(ends - Date.now() - 3 * dayMs)).toBeLessThan(dayMs);
    const node = { ...(down as object), health: "well", url: `https://127.0.0.1:${port}/v1` } as never;
    const clock = { wall: () => ends - dayMs, monotonic: () => 0 };
    expect(await texts({ nodes: () => [node], clock })).toEqual([
      `The certificate of the node gpu-1 expires on ${new Date(ends).toLocaleDateString("en", { dateStyle: "long", timeZone: "UTC" })}`,
    ]);
    await new Promise((closed) => server.close(closed));
    expect(await texts({ nodes: () => [node], clock })).toEqual([]); // nothing answers there any more
    rmSync(folder, { recursive: true });
  },
);
