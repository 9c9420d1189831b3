// The unix socket in the data folder through which commands reach a running server. Only the folder's owner can open it
// (mode 0600), so access to it allows everything. The protocol: POST /<operation> with a JSON body; the reply is
// JSON lines, any number of {"progress"} and then one {"result"} or {"error"}.
import { CommandError } from "../core/expected-error.ts";
import { chmodSync, existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Progress } from "../office/work.ts";
import { checkFolderRights } from "./process/folder-rights.ts";
import { unixUser } from "./process/unix-user.ts";

/** `user` is the user of the system who asks. */
export type Handler = (operation: string, given: unknown, progress: Progress, user: string) => Promise<unknown>;

/** Percent-encoded: a header has no other letters. */
const userHeader = "x-tollgate-user";

type Line =
  | Readonly<{ progress: string }>
  | Readonly<{ result: unknown }>
  /** `expected`: one line for the operator; else a fault of the program. */
  | Readonly<{ error: string; expected: boolean }>;

export interface ControlSocket {
  /** Makes it again where somebody removed it. */
  keep(): void;
  close(): Promise<void>;
}

export const socketFile = (dataFolder: string): string => join(dataFolder, "tollgate.sock");

/**
 * Serves the operations. The caller holds the data folder, so a socket that lies there is a dead server's.
 * `isExpected` tells a refusal for the operator from a fault of the program.
 */
export function openControlSocket(
  dataFolder: string,
  handle: Handler,
  isExpected: (error: unknown) => boolean,
): ControlSocket {
  const path = socketFile(dataFolder);
  let server = listen();
  return {
    keep() {
      if (existsSync(path) || !existsSync(dataFolder)) return;
      void server.stop();
      server = listen();
    },
    close: () => server.stop(),
  };

  function listen(): Bun.Server<undefined> {
    rmSync(path, { force: true });
    const before = process.umask(0o177); // the file must never be open to others, not even before chmod
    try {
      // An operation may be silent for minutes, where a disk stalls. Only this option keeps Bun from cutting it off after
      // 10 s: on a unix socket the timeout of a request is not heeded, though the types say the reverse.
      const options = { unix: path, idleTimeout: 0, development: false, fetch: answer };
      const listening = Bun.serve(options as unknown as Bun.Serve.Options<undefined>);
      chmodSync(path, 0o600);
      return listening;
    } finally {
      process.umask(before);
    }
  }

  async function answer(request: Request): Promise<Response> {
    const operation = decodeURIComponent(new URL(request.url).pathname.slice(1));
    const given: unknown = await request.json();
    const user = decodeURIComponent(request.headers.get(userHeader) ?? "unknown");
    const lines = new ReadableStream<Uint8Array>({
      async start(controller) {
        const encoder = new TextEncoder();
        const send = (line: Line) => controller.enqueue(encoder.encode(`${JSON.stringify(line)}\n`));
        try {
          send({ result: (await handle(operation, given, (progress) => send({ progress }), user)) ?? null });
        } catch (error) {
          send({ error: error instanceof Error ? error.message : String(error), expected: isExpected(error) });
        }
        controller.close();
      },
    });
    return new Response(lines, { headers: { "content-type": "application/jsonl" } });
  }
}

/**
 * Asks the running server of a data folder; null when none listens there. Throws CommandError with the server's own
 * words when the operation is refused, and where this user has no right to the folder.
 */
export async function askRunningServer(
  dataFolder: string,
  operation: string,
  given: unknown,
  progress: Progress,
): Promise<{ result: unknown } | null> {
  checkFolderRights(dataFolder, socketFile(dataFolder));
  let response: Response;
  try {
    response = await fetch(`http://tollgate/${encodeURIComponent(operation)}`, {
      unix: socketFile(dataFolder),
      method: "POST",
      headers: { [userHeader]: encodeURIComponent(unixUser(process.env)) },
      body: JSON.stringify(given),
    });
  } catch (error) {
    const { code } = error as { code?: string };
    if (code === "ENOENT" || code === "ECONNREFUSED" || code === "ENOTDIR") return null;
    throw new CommandError(
      `the running server cannot be reached through ${socketFile(dataFolder)}: ${code ?? String(error)}`,
    );
  }
  for await (const line of linesOf(response.body!)) {
    if ("result" in line) return line;
    if ("progress" in line) progress(line.progress);
    else throw new CommandError(line.expected ? line.error : `the running server failed: ${line.error}`);
  }
  throw new CommandError("the running server ended before it answered");
}

async function* linesOf(body: ReadableStream<Uint8Array>): AsyncGenerator<Line> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const bytes of body) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
    rest = lines.pop()!;
    for (const line of lines) yield JSON.parse(line) as Line;
  }
}
