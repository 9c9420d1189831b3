// The API's routes. Each endpoint answers at several addresses, because clients join a base address and a path in ways of
// their own, and pages of other sites may read its replies where the operator allows it.
import type { AnyElysia } from "elysia";
import type { Soon } from "../gateway.ts";
import type { CrossOrigin } from "./cross-origin.ts";
import type { Connection } from "./inference.ts";

/**
 * What may stand in place of /v1: a client was given {base_url}/v1 or {base_url} where it wants the other, or either with
 * a slash at its end.
 */
const bases = ["/v1", "", "/v1/v1", "/openai/v1", "//v1", "/v1/", "/", "/v1//v1", "/openai/v1/"];

/** All addresses of an endpoint whose own is `path`. */
export const addressesOf = (path: string): readonly string[] => bases.map((base) => base + path.slice("/v1".length));

/** `id`: what stands in the place of `:id` or `*`; "" where the path has neither. */
type Handle = (request: Request, connection: Connection | null, id: string) => Soon<Response>;

export class ApiRoutes {
  readonly #app: AnyElysia;
  readonly #crossOrigin: CrossOrigin;
  /** First words of the endpoints' paths behind /v1. */
  readonly #words = new Set<string>();

  constructor(app: AnyElysia, crossOrigin: CrossOrigin) {
    this.#app = app;
    this.#crossOrigin = crossOrigin;
  }

  add(method: "GET" | "POST" | "DELETE", path: `/v1/${string}`, handle: Handle): this {
    this.#words.add(path.split("/")[2]!);
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
    return first === "v1" || (first === "openai" && second === "v1") || this.#words.has(first ?? "");
  }
}
