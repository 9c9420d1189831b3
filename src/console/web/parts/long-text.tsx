// A text as it was written, of any length: drawn a few pieces at a time; only visible pieces are laid out.
import type { ComponentChildren, VNode } from "preact";
import { useMemo } from "preact/hooks";
import { useDrawnCount } from "./drawn-count.ts";
import { textPieces } from "./pieces.ts";

type LongTextProps = Readonly<{
  text: string;
  /** Draws a piece; by default as its text. */
  draw?: ((piece: string) => ComponentChildren) | undefined;
}>;

/** Pieces for each frame; without colors, a piece costs little. */
const plainAtOnce = 5;

export function LongText({ text, draw }: LongTextProps): VNode {
  const pieces = useMemo(() => textPieces(text), [text]);
  const drawn = useDrawnCount(pieces.length, draw === undefined ? plainAtOnce : 1);
  if (pieces.length <= 1) return <Piece text={text} draw={draw} />;
  return (
    <>
      {pieces.slice(0, drawn).map((piece, index) => (
        <span key={index} class="text-piece">
          <Piece text={piece} draw={draw} />
        </span>
      ))}
    </>
  );
}

const Piece = ({ text, draw }: LongTextProps): VNode => useMemo(() => <>{draw?.(text) ?? text}</>, [text, draw]);
