// Reads a body as text without keeping more than it may have.

/** The text of a body in UTF-8; null once it has more than `maxBytes`. */
export async function boundedText({ body }: Request | Response, maxBytes: number): Promise<string | null> {
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  for await (const chunk of body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > maxBytes) return null;
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}
