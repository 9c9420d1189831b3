// Makes HTML from texts: everything is escaped, and of Markdown only `code` and paragraphs are understood.

const entities: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

export const escaped = (text: string): string => text.replace(/[&<>"]/g, (character) => entities[character]!);

/** One line of prose. */
export const prose = (text: string): string =>
  escaped(text).replace(/`([^`]+)`/g, (_, code: string) => `<code>${code}</code>`);

export const paragraphs = (text: string): string =>
  text
    .split(/\n\n+/)
    .map((paragraph) => `<p>${prose(paragraph)}</p>`)
    .join("");
