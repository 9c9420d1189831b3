// What is known at once where the books are in memory, and later where they are asked for. Waited for only where it must be:
// `value instanceof Promise ? await value : value` on a request's path, and where nothing may happen between a look and a deed.
export type Soon<Value> = Value | Promise<Value>;

/** The same methods and properties, whose answers may come later. */
export type Soonly<Of> = {
  readonly [Name in keyof Of]: Of[Name] extends (...given: infer Given) => infer Answer
    ? (...given: Given) => Answer extends Promise<unknown> ? Answer : Soon<Answer>
    : Soon<Of[Name]>;
};
