// Finds the end of a JSON object that arrives in fragments, so that a tool call is known to be complete while its
// stream is still running.

const quote = 0x22;
const backslash = 0x5c;

/** Checks only structure: invalid JSON may never end, but nothing ends before its brackets are closed. */
export class JsonEnd {
  #depth = 0;
  #inString = false;
  #escaped = false;
  #reached = false;

  /** True once an object (or array) that began is closed. */
  get reached(): boolean {
    return this.#reached;
  }

  /** Returns how much of the text belongs to the object. */
  push(text: string): number {
    let at = 0;
    for (; at < text.length && !this.#reached; at++) {
      const code = text.charCodeAt(at);
      if (this.#inString) {
        if (this.#escaped) this.#escaped = false;
        else if (code === backslash) this.#escaped = true;
        else if (code === quote) this.#inString = false;
      } else if (code === quote) this.#inString = true;
      else if (code === 0x7b || code === 0x5b) this.#depth++;
      else if (code === 0x7d || code === 0x5d) this.#reached = --this.#depth <= 0;
    }
    return at;
  }
}
