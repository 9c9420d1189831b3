// Passes a request on to the main server over its unix socket, and its reply back: both as they arrive, whole or in
// pieces, and cut where the other side is cut. Uses `node:http`, because `fetch` runs at most 256 requests at once.
import { type IncomingMessage, request as openRequest } from "node:http";
import { Readable } from "node:stream";
import type { RawBody } from "../http/incoming.ts";
import { peerHeader } from "../http/peer-address.ts";
import { requestAddress } from "../http/request-address.ts";

/** Headers of the connection rather than the request; `expect` was answered where the connection was accepted. */
const ofConnection: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "expect",
]);

/** The server accepts more than `node:http` writes, and no header that matters here has such characters. */
const unwritable = /[^\t\x20-\x7e\x80-\xff]/;

/** A reply of known length up to this size is passed on in one piece, so that its client learns the length too. */
const wholeBytesMax = 1 << 20;

export type PassedOn = Readonly<{
  /** The complete server's socket. */
  unix: string;
  /** The address of the client's connection; null where unknown. */
  peer: string | null;
  /** The body where it was already read; null: as it comes. */
  body: RawBody | null;
  /** Code reads the reply, which must not pile up before it; absent: the runtime. */
  isRead?: boolean;
  /** Called when the reply has ended. */
  ended: () => void;
}>;

/** The complete server's reply to a request whose client is still there. Rejects where there was none. */
export async function passOn(
  request: Request,
  { unix, peer, body, isRead = false, ended }: PassedOn,
): Promise<Response> {
  const { promise, resolve, reject } = Promise.withResolvers<Response>();
  const { pathname, search } = requestAddress(request);
  const exchange = openRequest({
    socketPath: unix,
    method: request.method,
    path: pathname + search,
    headers: headersOf(request.headers, peer, body),
    agent: false, // a connection each: none is taken for a reply just before it closes
  });
  const leave = (): void => void exchange.destroy();
  request.signal.addEventListener("abort", leave, { once: true });
  exchange.on("response", (reply) => {
    reply.on("close", ended);
    resolve(responseOf(reply, request.method, isRead));
  });
  exchange.on("error", reject);
  exchange.on("close", () => {
    request.signal.removeEventListener("abort", leave);
    reject(new Error("the complete server gave no reply")); // does nothing where it gave one
  });
  if (body !== null) exchange.end(body);
  else if (request.body === null) exchange.end();
  else {
    // otherwise they would wait for the body's first byte, and so would a refusal that needs no body
    exchange.flushHeaders();
    sendBody(request.body, exchange).catch((error: Error) => exchange.destroy(error));
  }
  return promise;
}

function headersOf(headers: Headers, peer: string | null, body: RawBody | null): Record<string, string> {
  const passed: Record<string, string> = {};
  for (const [name, value] of headers) if (!ofConnection.has(name) && !unwritable.test(value)) passed[name] = value;
  if (body !== null) delete passed["content-encoding"]; // it was inflated when it was read
  if (body !== null) passed["content-length"] = String(Buffer.byteLength(body));
  if (peer === null) delete passed[peerHeader];
  else passed[peerHeader] = peer;
  // A refusal may come before the body was sent: a server that closes then resets what is on its way, including the
  // refusal.
  passed["connection"] = "keep-alive";
  return passed;
}

async function sendBody(body: ReadableStream<Uint8Array>, exchange: ReturnType<typeof openRequest>): Promise<void> {
  for await (const bytes of body) {
    if (exchange.destroyed) return;
    if (!exchange.write(bytes)) await drainedOrClosed(exchange);
  }
  exchange.end();
}

/** A reply that ends before the body was read closes the exchange, which then drains no more. */
function drainedOrClosed(exchange: ReturnType<typeof openRequest>): Promise<void> {
  return new Promise((resolve) => {
    const go = (): void => {
      exchange.off("drain", go).off("close", go);
      resolve();
    };
    exchange.on("drain", go).on("close", go);
  });
}

const statusesWithoutBody: ReadonlySet<number> = new Set([204, 304]);

async function responseOf(reply: IncomingMessage, method: string, isRead: boolean): Promise<Response> {
  const status = reply.statusCode ?? 502;
  const headers = new Headers();
  for (let place = 0; place < reply.rawHeaders.length; place += 2) {
    const name = reply.rawHeaders[place]!.toLowerCase();
    if (!ofConnection.has(name) && name !== "date") headers.append(name, reply.rawHeaders[place + 1]!);
  }
  if (method === "HEAD" || statusesWithoutBody.has(status)) {
    reply.resume();
    return new Response(null, { status, headers });
  }
  if (Number(headers.get("content-length") ?? Number.POSITIVE_INFINITY) <= wholeBytesMax) {
    const whole = await Array.fromAsync(reply as AsyncIterable<Uint8Array>);
    return new Response(Buffer.concat(whole), { status, headers });
  }
  if (isRead) return new Response(Readable.toWeb(reply) as unknown as ReadableStream, { status, headers });
  const source: Bun.DirectUnderlyingSource = {
    type: "direct",
    async pull(controller) {
      // A reply that is cut throws here, which cuts it for the client too.
      for await (const bytes of reply as AsyncIterable<Uint8Array>) {
        await controller.write(bytes);
        void controller.flush();
      }
      void controller.end();
    },
    cancel: () => void reply.destroy(),
  };
  return new Response(new ReadableStream(source), { status, headers });
}
