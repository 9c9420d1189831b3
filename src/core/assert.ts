/** Stops the process for a broken invariant: bugs must be found, not answered. Stays on in production. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new AssertionError(message);
}

class AssertionError extends Error {
  override readonly name = "AssertionError";
}
