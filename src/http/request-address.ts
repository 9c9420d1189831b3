// The address that a request asks for. Its host is what the client's Host header says, which may be no host, or missing:
// then the runtime's `url` is a path alone, or no URL at all, and nobody's request may fail for that.

/** Its path and query; the host is not the client's. */
export function requestAddress({ url }: Pick<Request, "url">): URL {
  const path = url.replace(/^https?:\/\/[^/?#]*/, "");
  return new URL(`http://gateway${path.startsWith("/") ? "" : "/"}${path}`);
}
