// Parses large bodies of the free routes one per turn of the event loop: parsing 4 MB takes 5 to 10 ms, and 20 of them
// at once would stop every stream for the whole time.

export class BodyTurns {
  #last: Promise<void> = Promise.resolve();

  /** Resolves when no other body is read in this turn of the event loop; what is ready on the sockets goes first. */
  next(): Promise<void> {
    this.#last = this.#last.then(() => new Promise((resolve) => setImmediate(resolve)));
    return this.#last;
  }
}
