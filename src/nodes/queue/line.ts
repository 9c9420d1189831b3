// A waiting line: first in, first out, and any entry may leave from the middle in constant time.

/** A doubly linked list whose links are handed out, so that removing needs no search. */
export class Line<T> {
  #first: Link<T> | null = null;
  #last: Link<T> | null = null;
  #length = 0;

  get length(): number {
    return this.#length;
  }
  get first(): Link<T> | null {
    return this.#first;
  }

  append(value: T): Link<T> {
    const link: Link<T> = { value, before: this.#last, after: null };
    if (this.#last === null) this.#first = link;
    else this.#last.after = link;
    this.#last = link;
    this.#length++;
    return link;
  }

  /** Takes a link of this line out; once only. */
  remove(link: Link<T>): void {
    if (link.before === null) this.#first = link.after;
    else link.before.after = link.after;
    if (link.after === null) this.#last = link.before;
    else link.after.before = link.before;
    this.#length--;
  }
}

export type Link<T> = { readonly value: T; before: Link<T> | null; after: Link<T> | null };
