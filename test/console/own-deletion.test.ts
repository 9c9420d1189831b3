// An account's deletion by its owner: only where the configuration says so, by who shows to be the owner, and with the one
// verb of deletion; or a request of which there is one at a time, and which the deletion itself grants.
import { expect, test } from "bun:test";
import { freshSignInMs } from "../../src/console/routes/own-deletion-routes.ts";
import { isRefusal } from "../../src/core/refusals.ts";
import { ask } from "../account/office.ts";
import { ConsoleSite } from "./console-site.ts";

const confirm = "owner@x";
const password = "correct horse";
const audit = async (site: ConsoleSite) => (await site.office.auditLog.list(10)).map((entry) => entry);

async function siteWith(accountDeletion: "self" | "request" | "off") {
  const site = new ConsoleSite({ accountDeletion });
  const operator = await site.signedIn("operator@x", { operator: true });
  const owner = await site.signedIn(confirm);
  const record = async () => (await site.office.accounts.record(owner.account.id))!;
  return { site, operator, owner, record };
}

test("without a word in the configuration nobody deletes the own account", async () => {
  const { owner, record } = await siteWith("off");
  expect((await owner.get("/deletion")).body).toMatchObject({ way: "off", request: null });
  expect((await owner.post("/deletion", { confirm, password })).status).toBe(403);
  expect(await record()).toMatchObject({ email: confirm, disabledAt: null });
});

test("the owner says address and password, and nothing is open; then the account is gone, and nobody's name is in the log", async () => {
  const { site, owner, record } = await siteWith("self");
  for (const [body, status] of [
    [{ confirm: "other@x", password }, 400],
    [{ confirm, password: "wrong" }, 401],
    [{ confirm }, 401],
  ] as const) {
    expect([body, (await owner.post("/deletion", body)).status]).toEqual([body, status]);
  }
  const hold = site.office.admit(owner.account.id, ask());
  if (isRefusal(hold)) throw new Error(hold.refusal);
  expect((await owner.post("/deletion", { confirm, password })).status).toBe(409);
  expect(await record()).toMatchObject({ email: confirm, disabledAt: null });
  hold[Symbol.dispose]();

  const gone = await owner.post("/deletion", { confirm, password });
  expect([gone.status, gone.body.account]).toEqual([200, null]);
  expect((await record()).email).toBe(`deleted-${owner.account.id}@invalid`);
  expect((await owner.get("/overview")).status).toBe(401);
  const { id } = owner.account;
  const detail = "its e-mail and stored responses were erased";
  expect(await audit(site)).toMatchObject([
    { action: "account.delete", operator: id, subject: id, address: "", detail },
  ]);
});

test("wrong passwords are counted together with those of a new password", async () => {
  const { owner } = await siteWith("self");
  const wrong = { old_password: "wrong", new_password: "long enough" };
  for (let tries = 0; tries < 10; tries++) await owner.post("/password", wrong);
  expect((await owner.post("/deletion", { confirm, password })).status).toBe(429);
});

test("the only operator stays, another may go", async () => {
  const { site, operator } = await siteWith("self");
  const body = { confirm: "operator@x", password };
  const refused = await operator.post("/deletion", body);
  expect([refused.status, refused.body.error.message]).toEqual([
    400,
    "Operator@x is the only operator; make another one first.",
  ]);
  await site.signedIn("second@x", { operator: true });
  expect((await operator.post("/deletion", body)).status).toBe(200);
});

test("who has no password must have signed in a moment ago", async () => {
  const { site, owner, record } = await siteWith("self");
  await site.office.units.change(({ accounts }) => accounts.setPassword(owner.account.id, null));
  site.office.now += freshSignInMs;
  expect((await owner.get("/deletion")).body).toMatchObject({ proof: "sign_in", is_fresh: false });
  expect((await owner.post("/deletion", { confirm })).status).toBe(401);
  site.office.now -= 1;
  expect((await owner.get("/deletion")).body).toMatchObject({ proof: "sign_in", is_fresh: true });
  expect((await owner.post("/deletion", { confirm })).status).toBe(200);
  expect((await record()).disabledAt).not.toBeNull();
});

test("a request is one at a time, is dismissed with a note, and granted by the deletion alone", async () => {
  const { operator, owner, record } = await siteWith("request");
  const asked = () => owner.post("/deletion", { confirm, password });
  expect((await asked()).body.account.email).toBe(confirm);
  expect((await asked()).body.error.message).toBe("A request to delete this account is pending already.");
  expect((await owner.get("/plan")).body.requests).toEqual([]);
  const pending = async () =>
    (await operator.get("/operator/requests?state=pending&kind=deletion")).body.requests as { id: number }[];
  const [first] = await pending();
  expect((await operator.post(`/operator/requests/${first!.id}/approve`, {})).status).toBe(400);
  expect(await record()).toMatchObject({ email: confirm, disabledAt: null });
  await operator.post(`/operator/requests/${first!.id}/decline`, { note: "your invoice is open" });
  expect((await owner.get("/deletion")).body.request).toMatchObject({
    state: "declined",
    decision_note: "your invoice is open",
  });

  await asked();
  const [second] = await pending();
  await owner.post("/plan/requests", { kind: "credit", tokens: 1_000_000, note: "for Ada" });
  const deletion = (email: string) =>
    operator.post(`/operator/accounts/${owner.account.id}/delete`, { confirm: email });
  expect((await deletion(confirm)).status).toBe(200);
  // Nobody could grant what a deleted account asked for.
  expect((await operator.get("/operator/requests?state=pending")).body.requests).toEqual([]);
  expect((await operator.get("/operator/requests?state=withdrawn")).body.requests).toMatchObject([
    { kind: "credit", note: "", decided_at: expect.any(String) },
  ]);
  for (const email of [confirm, (await record()).email]) {
    const again = await deletion(email);
    expect([again.status, again.body.error.message]).toEqual([409, "This account is already deleted."]);
  }
  const { requests } = (await operator.get("/operator/requests?state=approved")).body;
  expect(requests).toMatchObject([{ id: second!.id, kind: "deletion", note: "" }]);
  expect(requests[0].decided_at).not.toBeNull();
});
