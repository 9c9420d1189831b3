/** Stops the process for a broken invariant: a bug is never answered, it is found. Stays on in production. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new AssertionError(message);
}

class AssertionError extends Error {
  override readonly name = "AssertionError";
}
