// Collects the messages of one turn of the event loop and sends them as one.

export class MessageBatcher<Item> {
  readonly #send: (json: string) => void;
  readonly #atEndOfTurn: (flush: () => void) => void;
  #gathered: Item[] = [];
  #scheduled = false;

  /** `atEndOfTurn` can be replaced in simulations. */
  constructor(send: (json: string) => void, atEndOfTurn: (flush: () => void) => void = (flush) => setImmediate(flush)) {
    this.#send = send;
    this.#atEndOfTurn = atEndOfTurn;
  }

  put(item: Item): void {
    this.#gathered.push(item);
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#atEndOfTurn(() => {
      this.#scheduled = false;
      this.flush();
    });
  }

  /** Sends the collected messages now, before something else that depends on them. */
  flush(): void {
    if (this.#gathered.length === 0) return;
    const items = this.#gathered;
    this.#gathered = [];
    this.#send(JSON.stringify(items));
  }
}
