// Parses large bodies of free routes one per turn of the event loop: 4 MB take 5 to 10 ms, and 20 would stop streams.

export class BodyTurns {
  #last: Promise<void> = Promise.resolve();

  /** Resolves when no other body is read in this turn of the event loop; ready sockets go first. */
  next(): Promise<void> {
    this.#last = this.#last.then(() => new Promise((resolve) => setImmediate(resolve)));
    return this.#last;
  }
}
