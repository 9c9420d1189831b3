// Draws a TeX formula as MathML. The TeX parser is loaded with the first formula; until then, and if the formula is
// wrong, the text is shown as the model wrote it. MathML is built node by node: no text becomes HTML, and commands that
// could link, load or style (\href, \includegraphics, \class) are not trusted.
import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

type Render = typeof import("temml").default.render;

let loading: Promise<Render> | null = null;

function loadRender(): Promise<Render> {
  loading ??= import("temml").then(({ default: temml }) => temml.render);
  return loading;
}

/** Macros of a formula may be expanded so often: a few lines of them could else run forever. */
const expansionsMax = 500;
/** In em: a rule may not cover the page. */
const sizeMax = 20;

export type FormulaProps = Readonly<{
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
    const draw = (render: Render): void => {
      const element = holder.current;
      if (isGone || element === null) return;
      const options = { displayMode: display, throwOnError: true, trust: false, maxExpand: expansionsMax };
      try {
        render(tex, element, { ...options, maxSize: [sizeMax, sizeMax] });
        setDrawn(true);
      } catch {
        setDrawn(false); // the source says what the model meant
      }
    };
    loadRender().then(draw, () => setDrawn(false));
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
