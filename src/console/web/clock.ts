// The browser's clock. Nothing else reads it.

/** Wall-clock milliseconds since 1970 (UTC). */
export const now = (): number => Date.now();
