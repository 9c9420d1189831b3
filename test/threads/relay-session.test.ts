// What a relay hears where the books of the main thread fail.
import { expect, test } from "bun:test";
import { systemClock } from "../../src/core/clock.ts";
import { type Hold, OutcomeUnknown, StoreUnavailable } from "../../src/core/types.ts";
import { MainThreadClient } from "../../src/threads/main-thread-client.ts";
import { MessageBatcher } from "../../src/threads/message-batcher.ts";
import type { MainThreadAnswer, RelayOperation } from "../../src/threads/messages.ts";
import { RelaySession, type RelaySessionParts } from "../../src/threads/relay-session.ts";
import { ask, model, output } from "../account/office.ts";

const asker = { account: 1, key: 1, limits: null };

/** A hold on the relay's side of one that the main thread has. */
async function relayHold(hold: Hold): Promise<Hold> {
  const parts = {
    admission: { admit: () => hold },
    models: () => new Map([["core-3", model("core-3")]]),
    clock: systemClock,
  } as unknown as RelaySessionParts;
  const answers = new MessageBatcher<MainThreadAnswer>((json) => {
    for (const answer of JSON.parse(json) as MainThreadAnswer[]) client.answered(answer);
  }, queueMicrotask);
  const session = new RelaySession(parts, answers as never);
  const client = new MainThreadClient(
    new MessageBatcher<RelayOperation>((json) => session.obey(json), queueMicrotask),
    () => 0,
  );
  return (await client.admit({ ...asker, ask: ask(100), inputTokens: 0, requestId: "req-1" })) as Hold;
}

test.each([new StoreUnavailable("away"), new OutcomeUnknown("nobody knows")])(
  "%p is what the relay hears",
  async (thrown) => {
    const settle = (): Promise<never> => Promise.reject(thrown);
    const hold = await relayHold({ ready: null, settle, [Symbol.dispose]() {} });
    const heard = await hold.settle(output(1), false, 0).then(null, (error: Error) => error.name);
    expect(heard).toBe(thrown.name);
  },
);
