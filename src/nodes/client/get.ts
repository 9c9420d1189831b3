// One small request to a node with the whole answer in memory, for probes and for identifying the engine.
import { limitAtEndOfTurn } from "../../core/end-of-turn.ts";
import type { NodeClient } from "./client.ts";
import type { ExchangeFault, ExchangeHandler } from "./exchange.ts";
import type { ResponseHeaders } from "./framing.ts";
import { requestHead } from "./request-head.ts";

/** A list of models, or anything else that an engine reports about itself; a longer body is not understood. */
const nodeFactsBodyMaxBytes = 1024 * 1024;

export type NodeReply = Readonly<{ status: number; headers: ResponseHeaders; body: string }>;
/** Why there is no answer; "silent": none came in time, but the connection may be open. */
export type NoReply = Readonly<{ kind: ExchangeFault["kind"] | "silent"; cause: string }>;
export const isReply = (result: NodeReply | NoReply): result is NodeReply => "status" in result;

/** The answer to a GET, if one comes within `timeoutMs`. A body over nodeFactsBodyMaxBytes is cut. */
export const get = (
  client: NodeClient,
  path: string,
  apiKey: string | null,
  timeoutMs: number,
): Promise<NodeReply | NoReply> => answerTo(client, path, null, apiKey, timeoutMs);

export const post = (
  client: NodeClient,
  path: string,
  body: string,
  apiKey: string | null,
  timeoutMs: number,
): Promise<NodeReply | NoReply> => answerTo(client, path, body, apiKey, timeoutMs);

function answerTo(
  client: NodeClient,
  path: string,
  body: string | null,
  apiKey: string | null,
  timeoutMs: number,
): Promise<NodeReply | NoReply> {
  return new Promise((resolve) => {
    let status = 0;
    let headers: ResponseHeaders = new Map();
    const parts: Buffer[] = [];
    let bytesLeft = nodeFactsBodyMaxBytes;
    const finish = (answer: NodeReply | NoReply): void => {
      clearTimeout(timer);
      resolve(answer);
    };
    const answer = (): NodeReply => ({ status, headers, body: Buffer.concat(parts).toString("utf8") });
    const handler: ExchangeHandler = {
      head(code, given) {
        status = code;
        headers = given;
      },
      body(bytes, start, end) {
        const part = Buffer.from(bytes.subarray(start, Math.min(end, start + bytesLeft)));
        parts.push(part);
        bytesLeft -= part.length;
      },
      readEnd() {
        if (bytesLeft > 0) return;
        exchange.abort();
        finish(answer());
      },
      end: () => finish(answer()),
      fault: finish,
    };
    const length = body === null ? null : Buffer.byteLength(body);
    const head = requestHead(body === null ? "GET" : "POST", path, client.origin.hostHeader, apiKey, length);
    const exchange = client.send(body === null ? [head] : [head, body], handler);
    const giveUp = (): void => {
      exchange.abort();
      resolve({ kind: "silent", cause: `no answer within ${timeoutMs / 1000} s` });
    };
    const timer = limitAtEndOfTurn(timeoutMs, giveUp);
  });
}
