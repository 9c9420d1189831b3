// Whether a parsed JSON value is an object. `typeof` alone also accepts null and arrays.
export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
