// Reads the body of a request to the console. Such bodies are small.
import { boundedText } from "../core/bounded-text.ts";
import { unreadBodies } from "../http/arriving-bodies.ts";

/** The text of the body; null if it is larger than `maxBytes`. */
export async function readBody(request: Request, maxBytes: number): Promise<string | null> {
  if (Number(request.headers.get("content-length") ?? 0) > maxBytes) return null;
  unreadBodies.count += 1;
  try {
    return await boundedText(request, maxBytes);
  } finally {
    unreadBodies.count -= 1;
  }
}
