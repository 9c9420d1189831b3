// A Worker for stored responses that opens, keeps nothing, and dies when it is asked for something.
import type { Order } from "../../../src/store/responses/stored-responses-worker.ts";

declare const self: Worker;

self.onmessage = ({ data }: MessageEvent<Order>) => {
  if (data.order !== "open" && data.order !== "keep") throw new Error("the Worker dies");
  if (data.order === "open") self.postMessage({ number: data.number, result: null });
};
