// What a batch's files say of a line, in the form of the API that it came by.
import { base62Digits } from "../core/base62.ts";
import type { BatchForm } from "./batch.ts";

const lineDigits = 5;

/**
 * The billing key of a line's charge. It is made of the batch and the line, so that whoever runs or settles the line, and however
 * often, charges it once.
 */
export function lineRequestId(batchId: string, line: number): string {
  let digits = "";
  for (let rest = line, place = 0; place < lineDigits; place += 1, rest = Math.floor(rest / 62)) {
    digits = base62Digits[rest % 62] + digits;
  }
  return `req_${batchId.slice(batchId.indexOf("_") + 1).slice(0, -lineDigits)}${digits}`;
}

const lineIdOf = (requestId: string): string => `batch_req_${requestId.slice("req_".length)}`;

/** `reply` and what it stands in are JSON. A reply from a node may have line breaks between its values. */
export function repliedLine(
  form: BatchForm,
  requestId: string,
  customId: string,
  status: number,
  reply: string,
): string {
  const body = /[\n\r]/.test(reply) ? reply.replace(/[\n\r]/g, " ") : reply;
  const custom = JSON.stringify(customId);
  if (form === "openai") {
    const response = `{"status_code":${status},"request_id":"${requestId}","body":${body}}`;
    return `{"id":"${lineIdOf(requestId)}","custom_id":${custom},"response":${response},"error":null}`;
  }
  const result = status === 200 ? `{"type":"succeeded","message":${body}}` : `{"type":"errored","error":${body}}`;
  return `{"custom_id":${custom},"result":${result}}`;
}

/** Why lines have not run, or have no answer. */
export type Unrun = Readonly<{
  code: "batch_expired" | "batch_cancelled" | "batch_failed" | "answer_lost";
  message: string;
}>;

export const answerLost: Unrun = {
  code: "answer_lost",
  message:
    "This request ran and was charged once, but the server's disk lost its answer. Ask the operator for a refund",
};

export function unrunLine(form: BatchForm, requestId: string, customId: string, { code, message }: Unrun): string {
  if (form === "openai") {
    const error = { code, message };
    return JSON.stringify({ id: lineIdOf(requestId), custom_id: customId, response: null, error });
  }
  const error = { type: "error", error: { type: "api_error", message } };
  const type = {
    batch_expired: "expired",
    batch_cancelled: "canceled",
    batch_failed: "errored",
    answer_lost: "errored",
  }[code];
  return JSON.stringify({ custom_id: customId, result: { type, ...(type === "errored" ? { error } : {}) } });
}
