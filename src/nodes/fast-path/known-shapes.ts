// The event shapes of one model on one node: what an answer taught serves the next, so that few events are parsed.
import { type Simple, Template } from "./template.ts";

/** Text, reasoning and call arguments, for an engine that writes some of them in two ways. */
const templatesMax = 6;
/** Lessons after which no event was recognized, before learning stops: some nodes vary every event. */
const lessonsMax = 24;

export class KnownShapes<Channel> {
  /** Most recently learned first. */
  readonly #templates: Template<Channel>[] = [];
  #lessonsLeft = lessonsMax;

  find(bytes: Uint8Array, start: number, end: number): Template<Channel> | null {
    for (const template of this.#templates) if (template.match(bytes, start, end) >= 0) return template;
    return null;
  }

  learn(
    payload: string,
    simple: Simple<Channel>,
    read: (payload: string) => Simple<Channel> | null,
  ): Template<Channel> | null {
    if (this.#lessonsLeft === 0) return null;
    this.#lessonsLeft--;
    const template = Template.learn(payload, simple, read);
    if (template === null) return null;
    if (this.#templates.unshift(template) > templatesMax) this.#templates.pop();
    return template;
  }

  met(): void {
    this.#lessonsLeft = lessonsMax;
  }
}
