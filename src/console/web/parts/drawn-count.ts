// Draws a long text over several frames: its first pieces at once, one more with each frame.
import { useEffect, useState } from "preact/hooks";

const firstPieces = 2;

/** How many of the pieces to draw now; `more` are added with each frame. */
export function useDrawnCount(pieces: number, more: number): number {
  const [drawn, setDrawn] = useState(firstPieces);
  const goesOn = drawn < pieces;
  useEffect(() => {
    if (!goesOn) return undefined;
    const frame = requestAnimationFrame(() => setDrawn(drawn + more));
    return () => cancelAnimationFrame(frame);
  }, [goesOn, drawn]);
  return drawn;
}
