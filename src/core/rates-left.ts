// What is left of the requests and tokens that a request's account or key may use in a minute, for the headers of its reply.

/** `resetMs`: until all of it is there again. */
export type RateLeft = Readonly<{ limit: number; remaining: number; resetMs: number }>;

/** Null: not limited. `at`: when that was, in milliseconds since 1970. */
export type RatesLeft = Readonly<{ at: number; requests: RateLeft | null; tokens: RateLeft | null }>;
