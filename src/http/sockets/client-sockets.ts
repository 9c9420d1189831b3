// The WebSockets of all clients of this thread: how many there may be, which must end, and the end of all at a stop.
import { ByteBudget } from "../../core/byte-budget.ts";
import { busyRetrySeconds } from "../../core/limits.ts";
import { isRefusal, refuse } from "../../core/refusals.ts";
import { mintRequestId } from "../../core/request-id.ts";
import type { Dialect } from "../../dialects/dialect.ts";
import type { GatewayParts } from "../../gateway.ts";
import { clientAddress } from "../client-address.ts";
import { askerOf } from "../incoming.ts";
import type { KeyHeaders } from "../key-headers.ts";
import type { Connection } from "../peer-address.ts";
import { refusalReply, unknownAddressReply } from "../reply.ts";
import { type Answer, ClientSocket } from "./client-socket.ts";

/** OpenAI's limit. */
const openMaxMs = 60 * 60_000;
/** How soon a socket without requests ends when its key is revoked. */
const lookMs = 10_000;

/** Of the connection, or of a body: messages have neither. A cookie signs nobody in here. */
const notOfMessages = ["connection", "upgrade", "content-encoding", "transfer-encoding", "expect", "cookie"];

type Parts = Pick<GatewayParts, "keys" | "clock"> & Readonly<{ keyHeaders: KeyHeaders; addressHeader: string | null }>;

export class ClientSockets {
  readonly #answer: Answer;
  readonly #parts: Parts;
  readonly #open = new Set<ClientSocket>();
  readonly #places = new ByteBudget({ places: 4_096, bytes: 0, accountPlaces: 64, accountBytes: 0 });
  /** Conversations that are stored nowhere else, and messages that wait for their turn. */
  readonly #kept = new ByteBudget({ places: 65_536, bytes: 256 << 20, accountPlaces: 4_096, accountBytes: 64 << 20 });
  readonly #waiting = new ByteBudget({
    places: 65_536,
    bytes: 256 << 20,
    accountPlaces: 4_096,
    accountBytes: 64 << 20,
  });
  #timer: Timer | null = null;
  #stopped: (() => void) | null = null;

  constructor(answer: Answer, parts: Parts) {
    this.#answer = answer;
    this.#parts = parts;
  }

  async connect(request: Request, connection: Connection | null, dialect: Dialect): Promise<Response> {
    const { keys, clock, keyHeaders, addressHeader } = this.#parts;
    const requestId = mintRequestId(clock.wall());
    if (connection === null || !request.headers.has("upgrade")) return unknownAddressReply(dialect, request, requestId);
    const address = clientAddress(request, connection, addressHeader);
    const peer = connection.requestIP(request);
    const headers = new Headers(request.headers);
    for (const name of [...headers.keys()]) {
      if (notOfMessages.includes(name) || name.startsWith("sec-websocket")) headers.delete(name);
    }
    const head = new Request(request.url, { headers });
    const asker = (): ReturnType<typeof askerOf> => askerOf(head, keyHeaders, { keys, clock }, null, address);
    const by = await asker();
    if (isRefusal(by)) return refusalReply(dialect, by, requestId);
    const { account } = by;
    if (this.#stopped !== null) return refusalReply(dialect, refuse("stopping"), requestId);
    if (!this.#places.enter(account, 0)) {
      return refusalReply(dialect, refuse("busy", { seconds: busyRetrySeconds }), requestId);
    }
    const socket = new ClientSocket({
      answer: this.#answer,
      dialect,
      head,
      account,
      // What asks for a message's connection asks for the one that was upgraded.
      connection: {
        timeout: () => {},
        requestIP: () => peer,
        url: connection.url,
        readsReplies: true,
        upgrade: () => false,
      },
      kept: this.#kept,
      waiting: this.#waiting,
      openedAt: clock.monotonic(),
      asker,
      newId: () => mintRequestId(clock.wall()),
      closed: () => this.#closed(socket),
    });
    if (!connection.upgrade(request, { data: socket })) {
      this.#places.leave(account, 0);
      return refusalReply(dialect, refuse("upgrade_required"), requestId);
    }
    this.#open.add(socket);
    this.#timer ??= setInterval(() => void this.#look(), lookMs);
    return new Response(null); // the runtime has answered
  }

  /** Each ends with its last response; what it sends meanwhile is refused. Resolves when none is left. */
  stop(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#stopped = resolve;
    if (this.#open.size === 0) resolve();
    for (const socket of this.#open) void socket.retire(refuse("stopping"), 1001);
    return promise;
  }

  #closed(socket: ClientSocket): void {
    this.#open.delete(socket);
    this.#places.leave(socket.account, 0);
    if (this.#open.size > 0) return;
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
    this.#stopped?.();
  }

  async #look(): Promise<void> {
    for (const socket of [...this.#open]) {
      if (this.#parts.clock.monotonic() - socket.openedAt >= openMaxMs) {
        void socket.retire(refuse("websocket_connection_limit_reached"), 1001);
        continue;
      }
      const asker = await socket.asker();
      if (isRefusal(asker) && asker.refusal !== "quota_unverified") void socket.retire(asker, 1008);
    }
  }
}
