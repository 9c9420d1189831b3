// Draws a long text over several frames: its first pieces at once, one more with each frame.
import { useEffect, useState } from "preact/hooks";

/** So many pieces are drawn at once, and so many more with each frame. */
const firstPieces = 2;
const morePieces = 1;

/** How many of these pieces are to be drawn now. */
export function useDrawnCount(pieces: number): number {
  const [drawn, setDrawn] = useState(firstPieces);
  const goesOn = drawn < pieces;
  useEffect(() => {
    if (!goesOn) return undefined;
    const frame = requestAnimationFrame(() => setDrawn(drawn + morePieces));
    return () => cancelAnimationFrame(frame);
  }, [goesOn, drawn]);
  return drawn;
}
