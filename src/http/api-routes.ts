// The API's routes. Each endpoint answers at several addresses, because clients join base address and path in different
// ways, and pages of other sites may read its replies if the operator allows it.
import type { AnyElysia } from "elysia";
import type { Endpoint } from "../core/types.ts";
import type { Soon } from "../core/soon.ts";
import type { CrossOrigin } from "./cross-origin.ts";
import type { Connection } from "./inference.ts";

/**
 * What may stand in place of a path's version, such as /v1: a client was given {base_url}/v1 or {base_url} where it wants the
 * other, or either with a slash at its end.
 */
const basesOf = (v: string): readonly string[] => [
  ...[v, "", `${v}${v}`, `/openai${v}`],
  ...[`/${v}`, `${v}/`, "/", `${v}/${v}`, `/openai${v}/`],
];

/** All addresses of an endpoint whose own is `path`. */
export function addressesOf(path: Endpoint): readonly string[] {
  const version = versionOf(path);
  return basesOf(`/${version}`).map((base) => base + path.slice(1 + version.length));
}

const versionOf = (path: Endpoint): string => path.split("/")[1]!;

/** `id`: what stands in the place of `:id` or, decoded, of `*`; "" where the path has neither. */
type Handle = (request: Request, connection: Connection | null, id: string) => Soon<Response>;
/** What answers where an address ends like this. */
type Ending = Readonly<{ ending: string; handle: Handle }>;

export class ApiRoutes {
  readonly #app: AnyElysia;
  readonly #crossOrigin: CrossOrigin;
  readonly #unknown: (request: Request, connection: Connection | null) => Soon<Response>;
  readonly #versions = new Set(["v1"]);
  /** First words of the endpoints' paths behind the version. */
  readonly #words = new Set<string>();
  /** What was added of paths with a `*`, by what comes before it. */
  readonly #endings = new Map<string, Ending[]>();

  /** `unknown` answers at an address below a `*` that no path ends like. */
  constructor(
    app: AnyElysia,
    crossOrigin: CrossOrigin,
    unknown: (request: Request, connection: Connection | null) => Soon<Response>,
  ) {
    this.#app = app;
    this.#crossOrigin = crossOrigin;
    this.#unknown = unknown;
  }

  /** `path` may have a `:id` or one `*`, behind which an ending may stand: "/v1/models/*:generateContent". */
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
      if (found === undefined) return this.#unknown(request, connection);
      return found.handle(request, connection, id.slice(0, id.length - found.ending.length));
    });
  }

  #route(method: Method, path: Endpoint, handle: Handle): this {
    for (const address of addressesOf(path)) {
      this.#app.route(
        method,
        address,
        ({ request, server, params }) =>
          this.#crossOrigin.opened(request, handle(request, server, params?.id ?? params?.["*"] ?? "")),
        { parse: "none" },
      );
    }
    return this;
  }

  /** Whether an address is the API's, though nothing may be there. */
  isAt(pathname: string): boolean {
    const [first, second] = pathname.split("/").filter((word) => word !== "");
    const version = first === "openai" ? second : first;
    return this.#versions.has(version ?? "") || this.#words.has(first ?? "");
  }
}

type Method = "GET" | "POST" | "DELETE";

/** An id at the end of an address: clients encode it or not, and some put a slash behind it. */
function decoded(written: string): string {
  const id = written.endsWith("/") ? written.slice(0, -1) : written;
  try {
    return decodeURIComponent(id);
  } catch {
    return id; // a percent sign that encodes nothing
  }
}
