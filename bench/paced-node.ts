// An inference node that costs next to nothing, so that the proxy in front of it is what a benchmark measures: raw
// sockets, every byte of the answer precomputed, one timer for all streams. Speaks /v1/chat/completions (streaming
// or not, always the same answer) and /v1/models.
//
//   bun bench/paced-node.ts --tokens 100 --interval-ms 50
import type { Socket } from "bun";
import type { AnswerShape } from "./answer.ts";
import { answerEvents, answerJson, tokenBytesMin } from "./answer.ts";
import { readFlags } from "./flags.ts";
import type { Role } from "./placement.ts";
import type { Running } from "./process.ts";
import { bun, startProcess } from "./process.ts";
import { Wheel } from "./wheel.ts";

/** `intervalMs` between two tokens of a stream; 0 sends the whole answer in one write. */
export type NodeSettings = AnswerShape & Readonly<{ intervalMs: number }>;

export type PacedNode = Running & Readonly<{ port: number }>;

/** Starts the node as a process of its own on a free port. */
export async function startPacedNode(settings: NodeSettings, role: Role = "node"): Promise<PacedNode> {
  const running = await startProcess({
    role,
    command: [
      ...[bun, `${import.meta.dir}/paced-node.ts`],
      ...["--tokens", `${settings.tokens}`, "--token-bytes", `${settings.tokenBytes}`],
      ...["--interval-ms", `${settings.intervalMs}`],
    ],
    ready: /listening on http:\/\/127\.0\.0\.1:(\d+)/,
  });
  return { ...running, port: Number(running.ready[1]) };
}

/** One connection: the request being read, and the reply being sent. */
type Connection = {
  /** Joined only when a request is whole: adding 32 MiB to a string bit by bit would copy it again and again. */
  incoming: string[];
  incomingLength: number;
  /** Length of the request that is being read, or 0 while its head is not whole. */
  wantedLength: number;
  /** Index of the next token of the open stream, or -1 when none is open. */
  nextToken: number;
  /** What the socket did not take yet; the stream waits for it. */
  unsent: Buffer | null;
};
type NodeSocket = Socket<Connection>;

function serve(settings: NodeSettings, port: number): number {
  const answer = preparedAnswer(settings);
  const wheel = new Wheel<NodeSocket>(settings.intervalMs, (socket) => sendNext(socket, answer));
  if (settings.intervalMs > 0) wheel.start();
  const listener = Bun.listen<Connection>({
    hostname: "127.0.0.1",
    port,
    socket: {
      open(socket) {
        socket.data = { incoming: [], incomingLength: 0, wantedLength: 0, nextToken: -1, unsent: null };
        socket.setNoDelay(true);
      },
      data(socket, bytes) {
        const connection = socket.data;
        connection.incoming.push(bytes.toString("latin1"));
        connection.incomingLength += bytes.length;
        for (let request = takeRequest(connection); request !== null; request = takeRequest(connection)) {
          reply(socket, request, answer, settings, wheel);
        }
      },
      drain(socket) {
        const { unsent } = socket.data;
        socket.data.unsent = null;
        if (unsent !== null) send(socket, unsent);
      },
      close(socket) {
        socket.data.nextToken = -1;
      },
      error(_socket, thrown) {
        throw thrown;
      },
    },
  });
  return listener.port;
}

type Request = Readonly<{ head: string; body: string }>;

/** Takes the next whole request from what has arrived; bodies need a Content-Length. */
function takeRequest(connection: Connection): Request | null {
  if (connection.incomingLength < connection.wantedLength) return null;
  const incoming = connection.incoming.join("");
  connection.incoming = [incoming];
  const headEnd = incoming.indexOf("\r\n\r\n");
  if (headEnd < 0) return null;
  const head = incoming.slice(0, headEnd);
  const bodyStart = headEnd + 4;
  connection.wantedLength = bodyStart + contentLength(head);
  if (connection.incomingLength < connection.wantedLength) return null;
  const body = incoming.slice(bodyStart, connection.wantedLength);
  connection.incoming = [incoming.slice(connection.wantedLength)];
  connection.incomingLength -= connection.wantedLength;
  connection.wantedLength = 0;
  return { head, body };
}

const contentLengthPattern = /\r\ncontent-length: *(\d+)/i;

/** What it does not know: pages, and the dialects that a gateway translates for nodes that speak chat-completions alone. */
const foreignPattern = /^(?:GET |POST \/v1\/(?:messages|responses)[ ?])/;

/** With a space from clients that write JSON as Python does. */
const streamPattern = /"stream": ?true/;

function contentLength(head: string): number {
  return Number(contentLengthPattern.exec(head)?.[1] ?? 0);
}

function reply(
  socket: NodeSocket,
  request: Request,
  answer: PreparedAnswer,
  settings: NodeSettings,
  wheel: Wheel<NodeSocket>,
): void {
  if (request.head.startsWith("GET /v1/models")) return send(socket, answer.models);
  if (request.head.startsWith("GET /health")) return send(socket, answer.healthy);
  if (foreignPattern.test(request.head)) return send(socket, answer.notFound);
  if (!streamPattern.test(request.body)) return send(socket, answer.json);
  if (settings.intervalMs === 0) return send(socket, answer.whole);
  socket.data.nextToken = 1;
  send(socket, answer.opening);
  wheel.add(socket);
}

/** Sends the next token or the end; false when the stream is over or its client has gone. */
function sendNext(socket: NodeSocket, answer: PreparedAnswer): boolean {
  const connection = socket.data;
  if (connection.nextToken < 0) return false;
  if (connection.unsent !== null) return true;
  const token = answer.tokens[connection.nextToken++];
  if (token !== undefined) {
    send(socket, token);
    return true;
  }
  connection.nextToken = -1;
  send(socket, answer.end);
  return false;
}

function send(socket: NodeSocket, bytes: Buffer): void {
  const sent = Math.max(0, socket.write(bytes));
  if (sent < bytes.length) socket.data.unsent = bytes.subarray(sent);
}

type PreparedAnswer = Readonly<{
  /** Head, role and first token: engines send them together when the first token is ready. */
  opening: Buffer;
  tokens: readonly Buffer[];
  end: Buffer;
  whole: Buffer;
  json: Buffer;
  models: Buffer;
  /** Routers ask for it. */
  healthy: Buffer;
  notFound: Buffer;
}>;

/** A streamed answer with its head, as it is sent without an interval. */
export const wholeAnswer = (settings: NodeSettings): Buffer => preparedAnswer(settings).whole;

function preparedAnswer(settings: NodeSettings): PreparedAnswer {
  const events = answerEvents(settings);
  const head =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n";
  const opening = head + chunk(events.role) + chunk(events.tokens[0]!);
  const tokens = events.tokens.map(chunk);
  const end = events.end.map(chunk).join("") + "0\r\n\r\n";
  const model = { id: "bench", object: "model", created: 0, owned_by: "bench", max_model_len: 262_144 };
  return {
    opening: Buffer.from(opening),
    tokens: tokens.map((token) => Buffer.from(token)),
    end: Buffer.from(end),
    whole: Buffer.from(opening + tokens.slice(1).join("") + end),
    json: Buffer.from(jsonReply("200 OK", answerJson(settings))),
    models: Buffer.from(jsonReply("200 OK", JSON.stringify({ object: "list", data: [model] }))),
    healthy: Buffer.from(jsonReply("200 OK", "{}")),
    notFound: Buffer.from(jsonReply("404 Not Found", '{"error":{"message":"not found"}}')),
  };
}

function chunk(text: string): string {
  return `${text.length.toString(16)}\r\n${text}\r\n`;
}

function jsonReply(status: string, json: string): string {
  return `HTTP/1.1 ${status}\r\ncontent-type: application/json\r\ncontent-length: ${json.length}\r\n\r\n${json}`;
}

if (import.meta.main) {
  const flags = readFlags({ port: 0, tokens: 100, tokenBytes: tokenBytesMin, intervalMs: 50 });
  const port = serve(flags, flags.port);
  console.log(`paced node listening on http://127.0.0.1:${port}`);
}
