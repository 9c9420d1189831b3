// Reads the body of a request to the console. Such bodies are small.
import { unreadBodies } from "../http/arriving-bodies.ts";

/** The text of the body; null if it is larger than `maxBytes`. */
export async function readBody(request: Request, maxBytes: number): Promise<string | null> {
  if (Number(request.headers.get("content-length") ?? 0) > maxBytes) return null;
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  unreadBodies.count += 1;
  try {
    for await (const chunk of request.body ?? []) {
      bytes += chunk.byteLength;
      if (bytes > maxBytes) return null;
      text += decoder.decode(chunk, { stream: true });
    }
  } finally {
    unreadBodies.count -= 1;
  }
  return text + decoder.decode();
}
