// tollgate requests: the request log, or new requests as they come.
import { visibleLine } from "../core/visible.ts";
import { cellsOf, requests } from "../office/verbs/people.ts";
import type { Invocation } from "./command.ts";
import { perform } from "./perform.ts";
import { inputOf, tell } from "./verb-input.ts";

/** Rows shown first, and rows read each second. */
const followedFrom = 10;
const followLimit = 1_000;
const followIntervalMs = 1_000;
/** Rows shown last, which are not shown again. */
const shownMax = 2_000;

export default async function showRequests(invocation: Invocation): Promise<number> {
  const wanted = inputOf(requests, invocation);
  if (invocation.flags["follow"] === true) return follow(invocation, { ...wanted, limit: followLimit });
  const found = await perform(invocation, requests, wanted);
  tell(invocation, requests, wanted, found);
  if (found.searched_to !== null) console.error(`looked back to ${found.searched_to}; --to goes on from there`);
  return 0;
}

async function follow(invocation: Invocation, wanted: Parameters<typeof requests.print>[1]): Promise<never> {
  const isJson = invocation.flags["json"] === true;
  const shown = new Set<string>();
  let isFirst = true;
  for (;;) {
    const { rows } = await perform(invocation, requests, wanted);
    const news = rows.filter(({ request_id }) => !shown.has(request_id)).reverse();
    for (const [place, row] of news.entries()) {
      shown.add(row.request_id);
      if (isFirst && place < news.length - followedFrom) continue;
      console.log(isJson ? JSON.stringify(row) : cellsOf(row).map(String).map(visibleLine).join("  "));
    }
    isFirst = false;
    for (const old of shown) {
      if (shown.size <= shownMax) break;
      shown.delete(old);
    }
    await Bun.sleep(followIntervalMs);
  }
}
