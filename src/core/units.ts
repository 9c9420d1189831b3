// Units of time in milliseconds, and bytes in words.
export const hourMs = 3_600_000;
export const dayMs = 24 * hourMs;

/** "12,345 bytes" */
export const bytesText = (bytes: number): string => `${bytes.toLocaleString("en-US")} bytes`;
