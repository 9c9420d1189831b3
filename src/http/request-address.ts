// The address of a request. Its host comes from the client's Host header, which may be missing or invalid: then the
// runtime's `url` is only a path, or no URL at all, and no request may fail because of that.

/** Its path and query; the host is not the client's. */
export function requestAddress({ url }: Pick<Request, "url">): URL {
  const path = url.replace(/^https?:\/\/[^/?#]*/, "");
  return new URL(`http://gateway${path.startsWith("/") ? "" : "/"}${path}`);
}
