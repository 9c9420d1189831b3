// The address of a request, whose Host header may be missing or invalid: then `url` may be a path, or no URL.

/** Its path and query; the host is not the client's. */
export function requestAddress({ url }: Pick<Request, "url">): URL {
  const path = url.replace(/^https?:\/\/[^/?#]*/, "");
  return new URL(`http://gateway${path.startsWith("/") ? "" : "/"}${path}`);
}
