// Draws a TeX formula as MathML. The TeX parser is loaded with the first formula; until then, and if the formula is
// invalid, the text is shown as the model wrote it. MathML is built node by node, never from HTML, and commands that could
// link, load or style (\href, \includegraphics, \class) are not trusted.
import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { isModest } from "./formula-markdown.ts";

type Render = typeof import("temml").default.render;

let loading: Promise<Render> | null = null;

function loadRender(): Promise<Render> {
  loading ??= import("temml").then(({ default: temml }) => temml.render);
  return loading;
}

/** Macro expansions per formula: a few lines of macros could otherwise run forever. */
const expansionsMax = 100;
/** In em, so that a rule cannot cover the page. */
const sizeMax = 20;
/** TeX that is drawn in one turn of the event loop; otherwise a thousand short formulas would share one. */
const drawnAtOnceLength = 2_000;
const waiting: (() => number)[] = [];

/** Draws it in a later turn; `draw` returns the length of its TeX. */
function drawSoon(draw: () => number): void {
  if (waiting.push(draw) === 1) setTimeout(drawWaiting);
}

function drawWaiting(): void {
  let length = 0;
  let count = 0;
  while (count < waiting.length && length < drawnAtOnceLength) length += 20 + (waiting[count++]?.() ?? 0);
  waiting.splice(0, count);
  if (waiting.length > 0) setTimeout(drawWaiting);
}

type FormulaProps = Readonly<{
  tex: string;
  /** On a line of its own. */
  display: boolean;
  /** As the model wrote it. */
  source: string;
}>;

export function Formula({ tex, display, source }: FormulaProps): VNode {
  const holder = useRef<HTMLSpanElement>(null);
  const [isDrawn, setDrawn] = useState(false);
  useEffect(() => {
    let isGone = false;
    const draw = (render: Render): number => {
      const element = holder.current;
      if (isGone || element === null) return 0;
      const options = { displayMode: display, throwOnError: true, trust: false, maxExpand: expansionsMax };
      try {
        render(tex, element, { ...options, maxSize: [sizeMax, sizeMax] });
        setDrawn(true);
      } catch {
        setDrawn(false); // the source says what the model meant
      }
      return tex.length;
    };
    if (isModest(tex)) {
      loadRender().then(
        (render) => drawSoon(() => draw(render)),
        () => setDrawn(false),
      );
    } else setDrawn(false);
    return () => {
      isGone = true;
    };
  }, [tex, display]);
  return (
    <span class={display ? "formula display" : "formula"} dir="ltr">
      <span ref={holder} hidden={!isDrawn} />
      {!isDrawn && <code>{source}</code>}
    </span>
  );
}
