// What verbs do on books in memory, and the line that the office writes for each of them, whoever asks.
import { beforeEach, expect, test } from "bun:test";
import {
  invitationLink,
  invitations,
  invite,
  plan,
  show,
  withdrawInvitation,
} from "../../src/office/verbs/accounts.ts";
import { rotate } from "../../src/office/verbs/keys.ts";
import { approve, decline, list } from "../../src/office/verbs/purchases.ts";
import { drain } from "../../src/office/verbs/server.ts";
import type { Actor, Verb } from "../../src/office/verb.ts";
import { ConsoleSite } from "../console/console-site.ts";

let site: ConsoleSite;
beforeEach(() => (site = new ConsoleSite()));

const shell: Actor = { kind: "shell", user: "ada" };
const run = <Input, Result>(verb: Verb<Input, Result>, input: Input, actor: Actor = shell): Promise<Result> =>
  verb.run(site.parts.work, { actor, input, progress: () => {} });

/** Somebody who is signed in to the console. */
async function signedIn(kind: "operator" | "account", email: string, operator: boolean): Promise<Actor> {
  await site.office.accounts.create({ email, operator });
  const { units } = site.office;
  const account = (await units.read(({ accounts }) => accounts.record(1)))!;
  const session = { id: 7, tokenHash: "", account: 1, createdAt: 0, usedAt: 0, address: "192.0.2.1", browser: "" };
  return { kind, account, session, address: "192.0.2.1" };
}

const lines = async () =>
  (await site.office.units.read(({ auditLog }) => auditLog.list(10))).map(
    ({ action, operator, address, subject, detail }) => [action, operator, address, subject, detail] as const,
  );

test("a change has one line, with who asked and what it was before; a refused one and a look have none", async () => {
  const operator = await signedIn("operator", "ops@x", true);
  await run(plan, { email: "ops@x", plan: "plus" });
  await run(plan, { email: "OPS@x", plan: "pro" }, operator);
  await expect(run(plan, { email: "ops@x", plan: "gold" })).rejects.toThrow("no plan is called gold");
  await expect(run(plan, { email: "nobody@x", plan: "pro" })).rejects.toThrow("no account has the e-mail nobody@x");
  expect((await run(show, { email: "ops@x" })).plan).toBe("pro");
  expect(await lines()).toEqual([
    ["account.plan", 1, "192.0.2.1", 1, "from plus to pro"],
    ["account.plan", 0, "command line (ada)", 1, "from free to plus"],
  ]);
});

test.each([
  [true, 1],
  [false, 0],
])("what an owner who is an operator (%s) does to the own account has %d lines", async (isOperator, count) => {
  const owner = await signedIn("account", "ada@x", isOperator);
  await run(rotate, { email: "ada@x" }, owner);
  expect(await lines()).toHaveLength(count);
});

test("owners reach neither other accounts nor what is not for them", async () => {
  const owner = await signedIn("account", "ada@x", false);
  await site.office.accounts.create({ email: "bob@x" });
  await expect(run(rotate, { email: "bob@x" }, owner)).rejects.toThrow("owners ask for their own accounts");
  await expect(run(plan, { email: "ada@x", plan: "pro" }, owner)).rejects.toThrow("account may ask for accounts plan");
  expect(await lines()).toEqual([]);
});

test("requests of accounts are listed, approved once and declined", async () => {
  await site.office.accounts.create({ email: "ada@x" });
  for (const wanted of [
    { kind: "credit", tokens: 1_000_000 },
    { kind: "plan", plan: "pro" },
  ] as const) {
    await site.office.units.change(({ purchases }) => purchases.ask(1, wanted, "please"));
  }
  expect((await run(list, { state: "pending" })).map(({ id, kind }) => [id, kind])).toEqual([
    [2, "plan"],
    [1, "credit"],
  ]);
  for (const _ of ["", "again"]) {
    expect((await run(approve, { id: 1, note: "paid" })).request).toMatchObject({
      account: { id: 1, email: "ada@x" },
      state: "approved",
      decision_note: "paid",
    });
  }
  await run(decline, { id: 2 });
  await expect(run(approve, { id: 2 })).rejects.toThrow("this request is declined already");
  await expect(run(approve, { id: 9 })).rejects.toThrow("there is no request 9");
  expect((await run(show, { email: "ada@x" })).credit).toBe(1_000_000);
  expect(await run(list, { state: "pending" })).toEqual([]);
  const by = [0, "command line (ada)", 1] as const;
  expect(await lines()).toEqual([
    ["request.decline", ...by, "request 2: plan pro"],
    ["request.approve", ...by, "request 1: 1000000 balance tokens: paid"],
  ]);
  expect(list.print(await run(list, { kind: "plan" }), {})).toContain("plan pro");
});

test("a token of the scope people decides nothing that an operator asked for", async () => {
  await site.office.accounts.create({ email: "ops@x", operator: true });
  await site.office.purchases.ask(1, { kind: "credit", tokens: 1_000_000 }, "");
  const token = (scope: "people" | "all"): Actor => ({ kind: "token", name: "ci", scope, address: "192.0.2.7" });
  for (const verb of [approve, decline]) {
    await expect(run(verb, { id: 1 }, token("people"))).rejects.toThrow("need a token of the scope all");
  }
  expect((await run(show, { email: "ops@x" })).credit).toBe(0);
  await run(approve, { id: 1 }, token("all"));
  expect(await lines()).toEqual([
    ["request.approve", 0, "token ci (192.0.2.7)", 1, "request 1: 1000000 balance tokens"],
  ]);
});

test("invitations are listed and withdrawn", async () => {
  const { id } = await run(invite, { plan: "plus", expires: "2h" });
  expect(await run(invitations, {})).toMatchObject([{ id, email: null, plan: "plus" }]);
  expect(await run(withdrawInvitation, { id })).toEqual({ id });
  expect(await run(invitations, {})).toEqual([]);
  await expect(run(withdrawInvitation, { id })).rejects.toThrow("does not work anymore");
  expect((await lines()).map(([action, , , subject, detail]) => [action, subject, detail])).toEqual([
    ["invitation.withdraw", 0, `invitation ${id}`],
    ["invitation.create", 0, `invitation ${id}: plan plus, credit 0`],
  ]);
});

test("an open invitation gets another link, and the one before is void", async () => {
  const { id, link, expires_at } = await run(invite, { email: "bob@x", plan: "plus", credit: 7, expires: "2h" });
  const renewed = await run(invitationLink, { id });
  expect(renewed).toMatchObject({ email: "bob@x", plan: "plus", credit: 7, expires_at });
  const tokenOf = (address: string) => address.split("#")[1]!;
  await site.office.units.read(async ({ links }) => {
    await expect(links.find(tokenOf(link))).rejects.toThrow("does not work anymore");
    expect(await links.find(tokenOf(renewed.link))).toMatchObject({ id: renewed.id, email: "bob@x" });
  });
  expect(await run(invitations, {})).toMatchObject([{ id: renewed.id }]);
  await expect(run(invitationLink, { id })).rejects.toThrow("does not work anymore");
  expect((await lines())[0]).toEqual([
    "invitation.create",
    0,
    "command line (ada)",
    0,
    `invitation ${renewed.id}: plan plus, credit 7, for one address, in place of ${id}`,
  ]);
});

test("what a running server alone can do is refused without one, and leaves no line", async () => {
  await run(drain, { name: "one" });
  const stopped = { ...site.parts.work, fleet: null };
  await expect(drain.run(stopped, { actor: shell, input: { name: "one" }, progress: () => {} })).rejects.toThrow(
    "no server runs here",
  );
  expect(await lines()).toEqual([["node.drain", 0, "command line (ada)", 0, "one"]]);
});
