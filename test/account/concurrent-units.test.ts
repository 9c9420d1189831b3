// Units of the office, as many at once as people click, beside a model that does one after the other: on SQLite with a disk that
// fails now and then, on PostgreSQL by two gateways. The audit log says in which order units were committed. In that order
// the model does what was done; a unit that was refused must be refused by the model at some moment between its begin and end.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { StoreUnavailable } from "../../src/core/types.ts";
import type { Unit } from "../../src/account/office.ts";
import { hourMs } from "../../src/core/units.ts";
import { longForm, missing } from "../fixtures/optional.ts";
import { noPostgres, TestPostgres } from "../fixtures/postgres.ts";
import { randomOf, seedOfRun } from "../fixtures/random.ts";
import { Office } from "./office.ts";
import { type Given, OfficeModel, type Operation } from "./office-model.ts";
import { type AnyOffice, PostgresStore } from "./stores.ts";

const seed = seedOfRun();
const operationsMax = longForm ? 2_000 : 600;
const atOnce = 16;
const from = { address: "192.0.2.1", browser: "a browser" };

type Done = {
  operation: Operation;
  began: number;
  ended: number;
  outcome: Readonly<{ done: Given }> | Readonly<{ refused: string }> | "lost";
};

class Clicks {
  readonly all: Done[] = [];
  readonly #random: () => number;
  readonly #accounts = [1];
  readonly #requests: number[] = [];
  readonly #links: number[] = [];
  #moment = 0;

  constructor(
    readonly offices: readonly AnyOffice[],
    of: number,
  ) {
    this.#random = randomOf(of);
  }

  async run(): Promise<void> {
    await this.#click({ kind: "create", email: "e0@x", operator: true, credit: 0 });
    const worker = async (): Promise<void> => {
      while (this.all.length < operationsMax) await this.#click(this.#operation());
    };
    await Promise.all(Array.from({ length: atOnce }, worker));
  }

  async #click(operation: Operation): Promise<void> {
    const index = this.all.length;
    const done: Done = { operation, began: (this.#moment += 1), ended: 0, outcome: "lost" };
    this.all.push(done);
    const { units } = this.#pick(this.offices);
    try {
      const given = await units.change(async (unit) => {
        const result = await act(unit, operation);
        // The first account is the one that all know of.
        const entry = { at: 0, operator: 0, address: "", action: "account.plan", subject: 0 } as const;
        unit.auditLog.append({ ...entry, detail: String(index) });
        return result;
      });
      done.outcome = { done: given };
      if (typeof given === "number") this.#learn(operation, given);
    } catch (thrown) {
      if (!(thrown instanceof Error)) throw thrown;
      if (!(thrown instanceof StoreUnavailable)) done.outcome = { refused: thrown.constructor.name };
    }
    done.ended = this.#moment += 1;
  }

  #learn({ kind }: Operation, given: number): void {
    if (kind === "create" || kind === "come" || kind === "join") this.#accounts.push(given);
    if (kind === "ask") this.#requests.push(given);
    if (kind === "invite") this.#links.push(given);
  }

  #operation(): Operation {
    const account = this.#pick(this.#accounts.slice(-6));
    const any = this.#pick(this.#accounts.slice(0, 3));
    const email = `e${this.#below(40 + this.all.length / 4)}@x`;
    const request = this.#requests.length === 0 ? null : this.#pick(this.#requests.slice(-4));
    const link = this.#links.length === 0 ? null : this.#pick(this.#links.slice(-3));
    const key = 2 + this.#below(4);
    const name = `k${this.#below(5)}`;
    const operations: readonly (Operation | null)[] = [
      { kind: "create", email, operator: false, credit: this.#below(2) * 7 },
      { kind: "come", person: `p${this.#below(8)}`, email },
      { kind: "plan", account, plan: this.#pick(["free", "plus", "pro"]) },
      { kind: this.#pick(["disable", "enable", "enter", "enter", "leave"]), account },
      { kind: this.#pick(["disable", "enable", "promote", "dismiss"]), account: any },
      // Few are operators, so that each may be the last one.
      { kind: this.#pick(["promote", "dismiss", "disable", "enable"]), account: any },
      this.#below(4) === 0 ? { kind: "erase", account } : null,
      { kind: "credit", account, tokens: 1 + this.#below(9), reference: `r${this.#below(30)}` },
      {
        kind: "password",
        account: any,
        before: this.#pick([null, "one", "two"]),
        after: this.#pick(["one", "two"]),
      },
      { kind: "key", account, name },
      { kind: "rename", account, key, name },
      { kind: "revoke", account, key },
      { kind: "ask", account, tokens: 1 + this.#below(9) },
      request === null ? null : { kind: this.#pick(["approve", "approve", "decline", "withdraw"]), request },
      { kind: "invite", credit: 1 + this.#below(9) },
      link === null ? null : { kind: "join", link, email },
      link === null || this.#below(3) > 0 ? null : { kind: "void", link },
    ];
    return this.#pick(operations) ?? { kind: "leave", account };
  }

  #below(limit: number): number {
    return Math.floor(this.#random() * limit);
  }

  #pick<Item>(items: readonly Item[]): Item {
    return items[this.#below(items.length)]!;
  }
}

/** As the console and commands put units together. */
async function act(unit: Unit, operation: Operation): Promise<Given> {
  const { accounts, accountKeys, sessions, links, purchases, identities } = unit;
  switch (operation.kind) {
    case "create":
      return (await accounts.create(operation)).id;
    case "come": {
      const { person, email } = operation;
      const found = await identities.accountOf("issuer", person);
      if (found !== null) return found;
      const { id } = await accounts.create({ email });
      identities.connect("issuer", person, id);
      return id;
    }
    case "plan":
      return (await accounts.changePlan(operation.account, operation.plan), null);
    case "disable":
      await accounts.checkNotLastOperator(operation.account);
      await accounts.setDisabled(operation.account, true);
      await sessions.endAll(operation.account, null);
      return null;
    case "enable":
      return (await accounts.setDisabled(operation.account, false), null);
    case "promote":
    case "dismiss":
      return (await accounts.setOperator(operation.account, operation.kind === "promote"), null);
    case "erase":
      await accounts.checkNotLastOperator(operation.account);
      await accounts.setDisabled(operation.account, true);
      return (await accounts.erase(operation.account), null);
    case "credit":
      return (await accounts.addCredit(operation.account, operation.tokens, operation.reference)).credited;
    case "password": {
      const record = (await accounts.record(operation.account))!;
      if (!(await accounts.isAsItWas({ ...record, passwordHash: operation.before }))) return false;
      await accounts.setPassword(operation.account, operation.after);
      return true;
    }
    case "enter": {
      const { disabledAt } = (await accounts.record(operation.account))!;
      return disabledAt === null ? (await sessions.open(operation.account, from)).session.id : null;
    }
    case "leave":
      return (await sessions.endAll(operation.account, null), null);
    case "key":
      return (await accountKeys.create(operation.account, { name: operation.name })).id;
    case "rename":
      return (await accountKeys.rename(operation.account, operation.key, operation.name), null);
    case "revoke":
      return (await accountKeys.revoke(operation.account, operation.key), null);
    case "ask":
      return (await purchases.ask(operation.account, { kind: "credit", tokens: operation.tokens }, "")).id;
    case "approve":
    case "decline":
      return (await purchases[operation.kind](operation.request, "")).isNew;
    case "withdraw":
      return (await purchases.withdraw(operation.request)).isNew;
    case "invite": {
      const wanted = { email: null, credit: operation.credit, expiresAt: unit.now + hourMs };
      return (await links.make(await accounts.invitation(wanted))).link.id;
    }
    case "join": {
      const { credit } = await links.findById(operation.link);
      const { id } = await accounts.create({ email: operation.email, credit });
      await links.use(operation.link, id);
      return id;
    }
    case "void":
      return (await links.withdraw(operation.link), null);
  }
}

type Rows = (text: string) => Promise<readonly Readonly<Record<string, unknown>>[]>;

/** Throws where what was done is not what the model does. */
async function check(all: readonly Done[], rows: Rows): Promise<void> {
  const order = (await rows("SELECT detail FROM audit_log ORDER BY id")).map(({ detail }) => all[Number(detail)]!);
  if (order.some(({ outcome }) => outcome === "lost")) return; // the answer to a commit was lost: what it gave is not known
  const told = all.filter(({ outcome }) => outcome !== "lost" && "done" in outcome);
  expect(order.length).toBe(told.length);
  const model = new OfficeModel();
  const states = [model.copy()];
  for (const { operation, outcome } of order) {
    const given = (outcome as { done: Given }).done;
    expect([operation, model.apply(operation, given)]).toEqual([operation, { done: given }]);
    states.push(model.copy());
  }
  // Who began after another had ended comes after it.
  let latest = 0;
  for (const { began, ended } of order) {
    expect(ended).toBeGreaterThan(latest);
    latest = Math.max(latest, began);
  }
  for (const { operation, began, ended, outcome } of all) {
    if (outcome === "lost" || "done" in outcome) continue;
    const first = order.findLastIndex((other) => other.ended < began) + 1;
    const end = order.findLastIndex((other) => other.began < ended) + 1;
    const might = states.slice(first, end + 1).some((state) => {
      const by = state.copy().apply(operation, 1_000_000);
      return "refused" in by && by.refused === outcome.refused;
    });
    expect([operation, outcome, might]).toEqual([operation, outcome, true]);
  }
  await compareWithDisk(model, rows);
}

async function compareWithDisk(model: OfficeModel, rows: Rows): Promise<void> {
  const found = await rows(`SELECT id, email, plan, credit, operator, disabled_at, password_hash,
    (SELECT count(*) FROM sessions WHERE account_id = accounts.id) AS sessions,
    (SELECT sum(credit_delta) FROM journal WHERE account_id = accounts.id) AS booked FROM accounts ORDER BY id`);
  const wanted = Object.entries(model.accounts).map(
    ([id, { email, plan, credit, operator, disabled, ...account }]) => ({
      id: Number(id),
      email,
      plan,
      credit,
      operator,
      disabled,
      password: account.password,
      sessions: account.sessions.length,
      booked: credit,
    }),
  );
  expect(
    found.map((row) => ({
      id: Number(row["id"]),
      email: row["email"],
      plan: row["plan"],
      credit: Number(row["credit"]),
      operator: Boolean(row["operator"]),
      disabled: row["disabled_at"] !== null,
      password: row["password_hash"],
      sessions: Number(row["sessions"]),
      booked: Number(row["booked"] ?? 0),
    })),
  ).toEqual(wanted as never);
  const keys = await rows("SELECT account_id, id, name, revoked_at FROM api_keys ORDER BY account_id, id");
  expect(
    keys.map((key) => [Number(key["account_id"]), Number(key["id"]), key["name"], key["revoked_at"] !== null]),
  ).toEqual(
    Object.entries(model.accounts).flatMap(([account, of]) =>
      of.keys.map(({ id, name, revoked }) => [Number(account), id, name, revoked]),
    ),
  );
  const requests = await rows("SELECT id, state FROM purchase_requests ORDER BY id");
  expect(requests.map(({ id, state }) => [Number(id), state])).toEqual(
    Object.entries(model.requests).map(([id, { state }]) => [Number(id), state]),
  );
}

test(`${operationsMax} changes, ${atOnce} at once, are as one after the other (TOLLGATE_SEED=${seed})`, async () => {
  const office = new Office();
  const random = randomOf(seed + 1);
  office.storage.immediate = false;
  const clicks = new Clicks([office], seed);
  let isOver = false;
  const running = clicks.run().finally(() => (isOver = true));
  for (let commits = 0; !isOver;) {
    await new Promise<void>((resolve) => void setImmediate(resolve));
    if (!office.storage.waiting) continue;
    commits += 1;
    if (commits > 1 && random() < 0.1) office.storage.giveUp();
    else office.storage.succeed();
  }
  await running;
  office.storage.immediate = true;
  await check(clicks.all, async (text) => office.database.query(text).all() as Record<string, unknown>[]);
  expect(clicks.all.some(({ outcome }) => outcome === "lost")).toBe(true);
  expect((await office.verify()).violations).toEqual([]);
  // Memory says what the disk does, whatever was lost.
  for (const { id, plan, keyHash, disabledAt } of office.records.list(0, 10_000)) {
    const loaded = office.ledger.account(id);
    const { plan: of, disabled } = loaded;
    expect([of.id, disabled, loaded.keyHash]).toEqual([plan, disabledAt !== null, keyHash]);
    const live = office.records.keysOf(id).filter(({ revokedAt }) => revokedAt === null);
    const known = [...office.ledger.keysOf(loaded).values()].filter(({ isVoid }) => !isVoid);
    if (!disabled) expect(known.map((key) => [key.id, key.name])).toEqual(live.map((key) => [key.id, key.name]));
  }
}, 120_000);

const store = new PostgresStore(() => TestPostgres.start(), noPostgres);
const noServer = missing("the half on a PostgreSQL server", longForm, "set TOLLGATE_TESTS=all", false);

describe.skipIf(store.missing || noServer)("on PostgreSQL", () => {
  beforeAll(() => store.begin(), 60_000);
  afterAll(() => store.end());

  test(`so are those of two gateways (TOLLGATE_SEED=${seed})`, async () => {
    const opened = await store.open();
    const clicks = new Clicks([opened.office, opened.another()], seed);
    await clicks.run();
    await check(clicks.all, (text) => store.rows(text));
  }, 180_000);
});
