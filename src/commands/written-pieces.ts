// Writes a long JSON answer to standard output, piece by piece, as fast as it is read.
import { visible } from "../core/visible.ts";

export async function writePieces(pieces: AsyncIterable<string>): Promise<number> {
  const output = Bun.stdout.writer();
  try {
    for await (const piece of pieces) {
      await output.write(visible(piece));
      await output.flush();
    }
    await output.end();
    return 0;
  } catch (error) {
    if ((error as { code?: string }).code !== "EPIPE") throw error;
    return 1; // the reader has closed the pipe
  }
}
