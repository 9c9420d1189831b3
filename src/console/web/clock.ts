// The browser's clock, the only place where it is read.

/** Wall-clock milliseconds since 1970 (UTC). */
export const now = (): number => Date.now();
