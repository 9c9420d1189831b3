// The API's routes. Each endpoint answers at several addresses: clients join base address and path in different ways.
import type { AnyElysia } from "elysia";
import type { Endpoint } from "../core/types.ts";
import type { Soon } from "../core/soon.ts";
import type { CrossOrigin } from "./cross-origin.ts";
import type { Connection } from "./peer-address.ts";

/** Alternatives for a path's version: clients are given {base_url}/v1 or {base_url}, with or without a slash. */
const basesOf = (v: string): readonly string[] => [
  ...[v, "", `${v}${v}`, `/openai${v}`],
  ...[`/${v}`, `${v}/`, "/", `${v}/${v}`, `/openai${v}/`],
];

/** All addresses of the endpoint whose main one is `path`. */
export function addressesOf(path: Endpoint): readonly string[] {
  const version = versionOf(path);
  return basesOf(`/${version}`).map((base) => base + path.slice(1 + version.length));
}

const versionOf = (path: Endpoint): string => path.split("/")[1]!;

/** `id`: the part of the address at `:id` or, decoded, at `*`; "" where the path has neither. */
type Handle = (request: Request, connection: Connection | null, id: string) => Soon<Response>;

export type ApiRoutesParts = Readonly<{
  crossOrigin: CrossOrigin;
  /** Answers at an address below a `*` with an unknown ending. */
  unknown: (request: Request, connection: Connection | null) => Soon<Response>;
  /** Called with every request that Elysia does not see. */
  arrived: (request: Request, connection: Connection) => void;
  /** The reply after one of those threw. */
  failed: (request: Request, error: unknown) => Soon<Response>;
}>;

/** The form of `Bun.serve`'s routes. */
export type DirectRoutes = Record<string, Partial<Record<Method, DirectHandle>>>;
type DirectHandle = (request: Request, connection: Connection) => Soon<Response>;
type Ending = Readonly<{ ending: string; handle: Handle }>;

export class ApiRoutes {
  readonly #app: AnyElysia;
  readonly #direct: DirectRoutes;
  readonly #parts: ApiRoutesParts;
  readonly #versions = new Set(["v1"]);
  /** First words of the endpoints' paths after the version. */
  readonly #words = new Set<string>();
  /** Endings of paths with a `*`, by what precedes it. */
  readonly #endings = new Map<string, Ending[]>();

  /**
   * `direct` also gets the routes with fixed addresses, for the runtime's own router: Elysia creates a context for each
   * request, and for one with hooks reads its whole address. Addresses that this router does not know, such as one with
   * a trailing slash, Elysia handles.
   */
  constructor(app: AnyElysia, direct: DirectRoutes, parts: ApiRoutesParts) {
    this.#app = app;
    this.#direct = direct;
    this.#parts = parts;
  }

  /** `path` may have a `:id` or one `*`, which an ending may follow: "/v1/models/*:generateContent". */
  add(method: Method, path: Endpoint, handle: Handle): this {
    this.#versions.add(versionOf(path));
    this.#words.add(path.split("/")[2]!);
    const [start, ending] = path.split("*") as [Endpoint, string | undefined];
    if (ending === undefined) return this.#route(method, path, handle);
    const known = this.#endings.get(`${method} ${start}`);
    if (known !== undefined) {
      known.push({ ending, handle });
      return this;
    }
    const endings = [{ ending, handle }];
    this.#endings.set(`${method} ${start}`, endings);
    return this.#route(method, `${start}*`, (request, connection, written) => {
      const id = decoded(written);
      const found = endings.find(({ ending }) => id.endsWith(ending));
      if (found === undefined) return this.#parts.unknown(request, connection);
      return found.handle(request, connection, id.slice(0, id.length - found.ending.length));
    });
  }

  #route(method: Method, path: Endpoint, handle: Handle): this {
    const { crossOrigin } = this.#parts;
    const direct = path.includes(":") || path.includes("*") ? null : this.#caught(handle);
    for (const address of addressesOf(path)) {
      if (direct !== null) (this.#direct[address] ??= {})[method] = direct;
      this.#app.route(
        method,
        address,
        ({ request, server, params }) =>
          crossOrigin.opened(request, handle(request, server, params?.id ?? params?.["*"] ?? "")),
        { parse: "none" },
      );
    }
    return this;
  }

  #caught(handle: Handle): DirectHandle {
    const { crossOrigin, arrived, failed } = this.#parts;
    return (request, connection) => {
      try {
        arrived(request, connection);
        const reply = handle(request, connection, "");
        const whole = reply instanceof Promise ? reply.catch((error: unknown) => failed(request, error)) : reply;
        return crossOrigin.opened(request, whole);
      } catch (error) {
        return failed(request, error);
      }
    };
  }

  /** Whether an address belongs to the API, even if nothing is there. */
  isAt(pathname: string): boolean {
    const [first, second] = pathname.split("/").filter((word) => word !== "");
    const version = first === "openai" ? second : first;
    return this.#versions.has(version ?? "") || this.#words.has(first ?? "");
  }
}

type Method = "GET" | "POST" | "DELETE";

/** An id at the end of an address: clients may encode it, and some append a slash. */
export function decoded(written: string): string {
  const id = written.endsWith("/") ? written.slice(0, -1) : written;
  try {
    return decodeURIComponent(id);
  } catch {
    return id; // a percent sign that encodes nothing
  }
}
