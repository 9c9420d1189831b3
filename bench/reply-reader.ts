// Reads HTTP/1.1 replies from a keep-alive connection, byte by byte exact, with as little work as possible: the load
// client must not be the bottleneck. Text is latin1: the benchmarks' answers are ASCII.

export type ReplyReceiver = {
  /** A part of the body, with the chunk framing removed. */
  body(text: string, status: number): void;
  /** The reply is complete. */
  end(status: number): void;
};

export class ReplyReader {
  #state: "idle" | "head" | "length" | "chunk-size" | "chunk" | "chunk-end" | "trailer" = "idle";
  #carry = "";
  #left = 0;
  #status = 0;
  #receiver: ReplyReceiver | null = null;

  /** Expects one reply. */
  expect(receiver: ReplyReceiver): void {
    if (this.#state !== "idle") throw new Error("a reply is still being read");
    this.#receiver = receiver;
    this.#state = "head";
  }

  get idle(): boolean {
    return this.#state === "idle";
  }

  feed(text: string): void {
    let rest = this.#carry === "" ? text : this.#carry + text;
    this.#carry = "";
    while (rest !== "") {
      const used = this.#step(rest);
      if (used < 0) {
        this.#carry = rest;
        return;
      }
      rest = used === rest.length ? "" : rest.slice(used);
    }
  }

  /** Characters used of `rest`, or -1 when more are needed. */
  #step(rest: string): number {
    switch (this.#state) {
      case "idle":
        throw new Error(`bytes that nobody asked for: ${rest.slice(0, 80)}`);
      case "head":
        return this.#head(rest);
      case "length":
        return this.#part(rest, "idle");
      case "chunk":
        return this.#part(rest, "chunk-end");
      case "chunk-size":
        return this.#chunkSize(rest);
      case "chunk-end":
        if (rest.length < 2) return -1;
        this.#state = "chunk-size";
        return 2;
      case "trailer":
        if (rest.length < 2) return -1;
        if (!rest.startsWith("\r\n")) throw new Error(`unexpected trailer: ${rest.slice(0, 80)}`);
        this.#finish();
        return 2;
    }
  }

  #head(rest: string): number {
    const end = rest.indexOf("\r\n\r\n");
    if (end < 0) return -1;
    const head = rest.slice(0, end);
    this.#status = Number(head.slice(9, 12));
    if (/\r\ntransfer-encoding: *chunked/i.test(head)) {
      this.#state = "chunk-size";
      return end + 4;
    }
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
    if (length === undefined) throw new Error(`a reply without framing: ${head}`);
    this.#left = Number(length);
    if (this.#left === 0) this.#finish();
    else this.#state = "length";
    return end + 4;
  }

  #part(rest: string, next: "idle" | "chunk-end"): number {
    const part = rest.length <= this.#left ? rest : rest.slice(0, this.#left);
    this.#left -= part.length;
    this.#receiver!.body(part, this.#status);
    if (this.#left === 0) {
      if (next === "idle") this.#finish();
      else this.#state = next;
    }
    return part.length;
  }

  #chunkSize(rest: string): number {
    const end = rest.indexOf("\r\n");
    if (end < 0) return -1;
    this.#left = Number.parseInt(rest.slice(0, end), 16);
    if (Number.isNaN(this.#left)) throw new Error(`bad chunk size: ${rest.slice(0, end)}`);
    this.#state = this.#left === 0 ? "trailer" : "chunk";
    return end + 2;
  }

  #finish(): void {
    const receiver = this.#receiver!;
    this.#receiver = null;
    this.#state = "idle";
    receiver.end(this.#status);
  }
}
