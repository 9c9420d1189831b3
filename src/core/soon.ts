// What is known at once where the books are in memory, and later where they are asked for. On a request's path it is waited for
// only where it must be: `value instanceof Promise ? await value : value`.
export type Soon<Value> = Value | Promise<Value>;
