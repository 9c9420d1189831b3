// A Worker for stored responses that opens, keeps nothing, and dies when it is asked for something.
import { answerCalls } from "../../../src/core/workers.ts";
import type { ResponsesCall } from "../../../src/store/responses/stored-responses-worker.ts";

declare const self: Worker;

answerCalls<ResponsesCall>(self, ({ order }) => {
  // Later, so that it is no failed call.
  if (order !== "open" && order !== "keep") setTimeout(() => thrown("the Worker dies"), 0);
  return order === "open" ? null : new Promise(() => {});
});

function thrown(message: string): never {
  throw new Error(message);
}
