// Makes foreign text safe for a terminal or a log: characters that would move the cursor, recolor, retitle or turn the
// direction of surrounding text appear as `\u001b`. In JSON that is the same text.

/**
 * Controls except tab and line feed (C0, DEL, C1), separators of lines and paragraphs, and marks, embeddings, overrides
 * and isolates of direction.
 */
const acting = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

const escapeOf = (sign: string): string => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`;

export const visible = (text: string): string => text.replace(acting, escapeOf);

/** The same where a line break would start what looks like another line of ours. */
export const visibleLine = (text: string): string => visible(text).replaceAll("\n", "\\n").replaceAll("\t", "\\t");
