// Whether a value of parsed JSON is an object: neither null nor an array, which `typeof` takes for one.
export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
