// Notices on their way: tried again after growing pauses, given up in the end, and never in the way of who tells them.
import { afterEach, beforeEach, expect, jest, test } from "bun:test";
import type { WebhookConfig } from "../../src/config/webhooks.ts";
import { type Notice, type NoticeEvent, noticeEvents } from "../../src/core/notice.ts";
import { Deliveries, noticesWaitingMax, webhookRetriesMs } from "../../src/notices/deliveries.ts";

let now = 0;
let posted: { webhook: string; id: string; at: number }[] = [];
/** Why a notice is not taken; null: it is. A promise: not yet. */
let answer: (webhook: string, id: string) => string | null | Promise<string | null> = () => null;
let log: string[] = [];

beforeEach(() => {
  jest.useFakeTimers();
  now = 0;
  posted = [];
  log = [];
  answer = () => null;
});
afterEach(() => jest.useRealTimers());

const webhook = (name: string, events: readonly NoticeEvent[] = noticeEvents): WebhookConfig => {
  return { name, url: `http://${name}`, host: name, secret: null, format: "json", events };
};
const notice = (id: string, event: Notice["event"] = "node.down"): Notice => {
  return { id, event, at: 0, content: () => ({ text: id, data: {} }) };
};

function open(...webhooks: WebhookConfig[]): Deliveries {
  const deliveries = new Deliveries({
    post: async ({ name }, { id }) => {
      posted.push({ webhook: name, id, at: now });
      return answer(name, id);
    },
    clock: { wall: () => now, monotonic: () => now },
    log: (level, message, detail) => void log.push(`${level} ${message} ${JSON.stringify(detail)}`),
  });
  deliveries.configure(webhooks);
  return deliveries;
}

/** Lets what is due happen, step by step. */
async function pass(ms: number, stepMs = 1_000): Promise<void> {
  const settle = async (): Promise<void> => {
    for (let turn = 0; turn < 40; turn += 1) await Promise.resolve();
  };
  await settle();
  for (let passed = 0; passed < ms; passed += stepMs) {
    now += stepMs;
    jest.advanceTimersByTime(stepMs);
    await settle();
  }
}

test("each webhook is told what it asks for, once", async () => {
  const deliveries = open(webhook("all"), webhook("backups", ["backup.failed"]));
  deliveries.tell(notice("1"));
  deliveries.tell(notice("2", "backup.failed"));
  await pass(60_000);
  expect(posted.map(({ webhook: name, id }) => `${name} ${id}`).toSorted()).toEqual(["all 1", "all 2", "backups 2"]);
  expect(deliveries.states()).toMatchObject([
    { sent: 2, failed: 0, dropped: 0, waiting: 0, problem: null },
    { sent: 1, waiting: 0 },
  ]);
});

test("what is not taken is tried again with the same id after growing pauses, and given up after some hours", async () => {
  const deliveries = open(webhook("away"));
  answer = () => "it answered 503";
  deliveries.tell(notice("1"));
  await pass(5 * 3_600_000);
  const times = posted.map(({ at }) => at);
  expect(times.slice(1).map((at, index) => at - times[index]!)).toEqual([...webhookRetriesMs]);
  expect(new Set(posted.map(({ id }) => id))).toEqual(new Set(["1"]));
  expect(deliveries.states()).toMatchObject([
    { sent: 0, failed: 8, dropped: 1, waiting: 0, problem: "it answered 503" },
  ]);
  expect(log).toEqual([
    expect.stringContaining("was not accepted"),
    expect.stringContaining("8 tries failed: it answered 503"),
  ]);
});

test("one that is taken later is not told again, and one that never is holds up no other", async () => {
  const deliveries = open(webhook("ops"));
  answer = (_, id) => (id === "bad" ? "it answered 400" : id === "late" && now < 30_000 ? "it answered 503" : null);
  for (const id of ["bad", "late", "good"]) deliveries.tell(notice(id));
  await pass(1_000);
  expect(deliveries.states()).toMatchObject([{ sent: 1, waiting: 2 }]);
  await pass(5 * 3_600_000);
  expect(posted.filter(({ id }) => id === "late").map(({ at }) => Math.round(at / 1_000))).toEqual([0, 5, 35]);
  expect(deliveries.states()).toMatchObject([{ sent: 2, dropped: 1, waiting: 0 }]);
});

test("a target that gives no answer keeps nobody waiting, and what waits for it is bounded", async () => {
  const deliveries = open(webhook("slow"), webhook("quick"));
  answer = (name) => (name === "slow" ? new Promise(() => {}) : null);
  for (let told = 0; told < 1_000; told += 1) {
    deliveries.tell(notice(String(told)));
    if (told % 3 === 0) await pass(1_000);
  }
  await pass(1_000);
  expect(deliveries.states()).toMatchObject([
    { sent: 0, waiting: noticesWaitingMax, dropped: 1_000 - noticesWaitingMax },
    { sent: 1_000, waiting: 0, dropped: 0 },
  ]);
  expect(posted.filter(({ webhook: name }) => name === "slow")).toHaveLength(1);
  expect(deliveries.close()).toBe(noticesWaitingMax);
});

test("what waits goes to where the webhook is now, and nothing to one that is no longer configured", async () => {
  const deliveries = open(webhook("stays"), webhook("goes"));
  answer = () => "it answered 503";
  deliveries.tell(notice("1"));
  await pass(1_000);
  answer = () => null;
  deliveries.configure([{ ...webhook("stays"), url: "http://elsewhere" }]);
  await pass(60_000);
  expect(posted.map(({ webhook: name }) => name)).toEqual(["stays", "goes", "stays"]);
  expect(deliveries.states()).toMatchObject([{ config: { url: "http://elsewhere" }, sent: 1, failed: 1 }]);
});
