// Whether a request comes from this site's own pages: browsers send Origin with every POST and DELETE, and pages cannot
// change it. A request without one comes from no browser page, or from one that hides its origin.

/** True where the Origin header names {base_url}, or the host of the request itself. */
export function isSameOrigin(headers: Headers, baseUrl: string): boolean {
  const origin = headers.get("origin");
  if (origin === null || !URL.canParse(origin)) return false; // "null" is no URL
  const own = new URL(baseUrl);
  const { protocol, host, origin: given } = new URL(origin);
  if (given === own.origin) return true;
  // A page over plain http may be an attacker's where the site has https.
  const isWebAddress = protocol === "https:" || (protocol === "http:" && own.protocol === "http:");
  return isWebAddress && host === headers.get("host")?.toLowerCase();
}
