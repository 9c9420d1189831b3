// A process of its own that charges an account as fast as the disk takes it, and prints each request id once its charge
// is on disk. Killed by accounting.test.ts.  Arguments: data folder, prefix of the request ids.
import { desksOf } from "../account/desks.ts";
import { by } from "../fixtures/principals.ts";
import { writeSync } from "node:fs";
import { openAccounting } from "../../src/books/accounting.ts";
import { assert } from "../../src/core/assert.ts";
import { systemClock } from "../../src/core/clock.ts";
import { isRefusal } from "../../src/core/refusals.ts";
import { ask, output, plans } from "../account/office.ts";

const [dataFolder, prefix] = process.argv.slice(2);
assert(dataFolder !== undefined && prefix !== undefined, "arguments: data folder, prefix");

const accounting = await openAccounting({
  dataFolder,
  catalog: { plans },
  siteUrl: "http://site",
  clock: systemClock,
  onFatal(error) {
    throw error;
  },
});
if (await desksOf(accounting).accounts.none())
  await desksOf(accounting).accounts.create({ email: "a@x", credit: 1_000_000_000 });
const { id } = await desksOf(accounting).accounts.show("a@x");

let requests = 0;
async function charge(): Promise<never> {
  for (;;) {
    const requestId = `${prefix}-${(requests += 1)}`;
    // A minute apart, so that flood protection lets all of them pass.
    const now = Date.UTC(2026, 2, 28) + requests * 60_000;
    const admitted = accounting.admission.admit(
      { ...by(id), ask: ask(10), inputTokens: 0, requestId },
      { wall: now, monotonic: now },
    );
    assert(!isRefusal(admitted), "the balance is enough");
    using hold = admitted;
    await hold.settle(output(3), false, now);
    writeSync(1, `${requestId}\n`);
  }
}
await Promise.all(Array.from({ length: 50 }, charge));
