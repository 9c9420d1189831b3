// The headers in which a request may bring its key: `Authorization: Bearer` and those of the dialects, on every route.
export class KeyHeaders {
  readonly #names: readonly string[];

  /** `names`: those beside `Authorization`, in lower case. */
  constructor(names: readonly string[]) {
    this.#names = names;
  }

  /** Null: there is no key, or there are two different ones. */
  keyOf(headers: Headers): string | null {
    const authorization = headers.get("authorization");
    let key =
      authorization !== null && /^bearer +/i.test(authorization) ? authorization.replace(/^bearer +/i, "") : null;
    for (const name of this.#names) {
      const named = headers.get(name);
      if (key !== null && named !== null && key !== named) return null;
      key ??= named;
    }
    return key;
  }

  /** A key, right or wrong, always takes precedence over a cookie. */
  mayBeSignedIn(headers: Headers): boolean {
    return headers.has("cookie") && !headers.has("authorization") && !this.#names.some((name) => headers.has(name));
  }
}
