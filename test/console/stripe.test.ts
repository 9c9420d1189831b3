// Payments through Stripe: its own library signs the webhooks of these tests, and a server of our own stands for its API.
import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import Stripe from "stripe";
import type { PaymentProvider } from "../../src/console/payment-provider.ts";
import { openStripe } from "../../src/console/stripe.ts";
import { eventually } from "../fixtures/eventually.ts";
import { type ConsoleBrowser, ConsoleSite } from "./console-site.ts";

const webhookSecret = "whsec_test_secret";
const orders: URLSearchParams[] = [];
let stripeStatus = 200;
/** Stands for Stripe: keeps what was ordered. */
const api = Bun.serve({
  port: 0,
  async fetch(request) {
    orders.push(new URLSearchParams(await request.text()));
    if (stripeStatus !== 200) return Response.json({ error: { message: "no" } }, { status: stripeStatus });
    return Response.json({ id: "cs_1", object: "checkout.session", url: "https://pay.test/cs_1" });
  },
});
afterAll(() => api.stop(true));

const options = { secretKey: "sk_test_x", webhookSecret, url: `http://127.0.0.1:${api.port}` };
const payment: PaymentProvider = await openStripe(options);
const stripe = new Stripe("sk_test_x");

let site: ConsoleSite;
let customer: ConsoleBrowser;
beforeEach(async () => {
  site = new ConsoleSite({ payment });
  customer = await site.signedIn("customer@x");
  stripeStatus = 200;
});

type Session = Readonly<Record<string, unknown>>;
let events = 0;

/** What Stripe tells about a paid session for 1,000,000 tokens. */
function event(more: Session = {}, type = "checkout.session.completed"): string {
  const session = {
    id: "cs_1",
    object: "checkout.session",
    payment_intent: "pi_1",
    payment_status: "paid",
    currency: "usd",
    amount_subtotal: 500,
    amount_total: 500,
    metadata: { account: String(customer.account.id), tokens: "1000000" },
    ...more,
  };
  return JSON.stringify({
    id: `evt_${(events += 1)}`,
    object: "event",
    type,
    created: 1_780_000_000,
    data: { object: session },
  });
}

const signed = (payload: string, secret = webhookSecret, timestamp?: number): Promise<string> =>
  stripe.webhooks.generateTestHeaderStringAsync({
    payload,
    secret,
    ...(timestamp === undefined ? {} : { timestamp }),
  });

async function tell(payload: string, signature?: string | null): Promise<Response> {
  const header = signature === undefined ? await signed(payload) : signature;
  const headers: Record<string, string> = header === null ? {} : { "stripe-signature": header };
  return site.send("/console/webhooks/stripe", { method: "POST", headers, body: payload });
}

const credit = async (): Promise<number> => (await customer.get("/plan")).body.credit;

test("a payment begins on Stripe's page, with the exact amount, the account and the way back", async () => {
  const { body } = await customer.post("/plan/checkout", { tokens: 2_000_000 });
  expect(body).toEqual({ url: "https://pay.test/cs_1" });
  const order = orders.at(-1)!;
  expect(Object.fromEntries(order)).toMatchObject({
    mode: "payment",
    "line_items[0][quantity]": "1",
    "line_items[0][price_data][currency]": "usd",
    "line_items[0][price_data][unit_amount]": "1000",
    "metadata[account]": String(customer.account.id),
    "metadata[tokens]": "2000000",
    success_url: "http://console.test/plan?paid=1",
    cancel_url: "http://console.test/plan",
  });
  expect(await credit()).toBe(0);
});

test("a Stripe that refuses takes nothing, and is told as unavailable", async () => {
  stripeStatus = 400;
  const { status, body } = await customer.post("/plan/checkout", { tokens: 1_000_000 });
  expect([status, body.error.code]).toEqual([503, "unavailable"]);
});

describe("a paid session", () => {
  test("is credited once, however often and by however many events at once it is told", async () => {
    const [one, other] = [event(), event({}, "checkout.session.async_payment_succeeded")];
    const all = await Promise.all(Array.from({ length: 50 }, (_, index) => tell(index % 2 === 0 ? one : other)));
    for (let time = 0; time < 10; time++) all.push(await tell(one));
    expect(new Set(all.map(({ status }) => status))).toEqual(new Set([200]));
    const { body } = await customer.get("/plan");
    expect(body.credit).toBe(1_000_000);
    expect(body.payments).toEqual([{ id: "stripe:pi_1", tokens: 1_000_000, paid_at: "2026-05-28T20:26:40.000Z" }]);
    const lines = site.office.database.query("SELECT billing_key FROM journal WHERE kind = 'credit'").all();
    expect(lines).toEqual([{ billing_key: "payment:stripe:pi_1" }]);
  });

  test("and another are two", async () => {
    await tell(event());
    await tell(event({ id: "cs_2", payment_intent: "pi_2" }));
    expect(await credit()).toBe(2_000_000);
  });

  test("that the disk did not take is refused, so that Stripe tells it again, and credited then", async () => {
    const { office } = site;
    office.storage.immediate = false;
    const told = tell(event());
    await eventually("the disk is asked", async () => office.storage.waiting);
    office.storage.giveUp();
    expect((await told).status).toBe(503);
    office.storage.immediate = true;
    expect(await credit()).toBe(0);
    expect((await tell(event())).status).toBe(200);
    expect(await credit()).toBe(1_000_000);
  });
});

describe("nothing is credited for", () => {
  test.each<[string, (payload: string) => string | null | Promise<string>]>([
    ["no signature", () => null],
    ["an empty signature", () => ""],
    ["a signature of another secret", (payload) => signed(payload, "whsec_other")],
    ["the signature of another body", () => signed(event({ id: "cs_9" }))],
    ["a signature that is an hour old", (payload) => signed(payload, webhookSecret, Date.now() / 1000 - 3_600)],
  ])("%s", async (_, forge) => {
    const payload = event();
    const response = await tell(payload, await forge(payload));
    expect(response.status).toBe(400);
    expect(await credit()).toBe(0);
  });

  test.each<[string, Session]>([
    ["a session that is not paid yet", { payment_status: "unpaid" }],
    ["a session that sells something else", { metadata: {} }],
    ["less money than was ordered", { amount_subtotal: 499 }],
    ["another currency", { currency: "jpy" }],
    ["an account that does not exist", { metadata: { account: "999", tokens: "1000000" } }],
    ["an amount that is no number", { metadata: { account: "1", tokens: "1e6" } }],
  ])("%s; it is taken, so that it is not told again", async (_, more) => {
    const response = await tell(event(more));
    expect(response.status).toBe(200);
    expect(await credit()).toBe(0);
  });

  test("another kind of event", async () => {
    expect((await tell(event({}, "checkout.session.expired"))).status).toBe(200);
    expect(await credit()).toBe(0);
  });

  test("a body of more than 1 MiB", async () => {
    expect((await tell("x".repeat(1_100_000))).status).toBe(400);
  });
});

test("without a configuration there is no webhook", async () => {
  site = new ConsoleSite();
  expect((await tell(event())).status).toBe(404);
});

test("the secrets are in no log and no reply", async () => {
  stripeStatus = 401;
  const { body } = await customer.post("/plan/checkout", { tokens: 1_000_000 });
  const said = JSON.stringify(body) + site.logged.join("\n");
  expect(said).not.toContain("sk_test_x");
  expect(said).not.toContain(webhookSecret);
});
