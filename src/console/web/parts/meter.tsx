// Shows how much of something is left, as a bar with numbers.
import type { ComponentChildren, VNode } from "preact";
import { count } from "../format.ts";

/** Below this part the bar warns. */
const lowPart = 0.15;

type MeterProps = Readonly<{ name: string; left: number; of: number; about?: ComponentChildren }>;

export function Meter({ name, left, of, about }: MeterProps): VNode {
  const part = of <= 0 ? 0 : Math.min(1, Math.max(0, left / of));
  return (
    <div class="meter-row">
      <div class="names">
        <span class="figure-name">{name}</span>
        <span class="number">
          {count(left)} <span class="quiet">of {count(of)}</span>
        </span>
      </div>
      <span
        class={part < lowPart ? "meter low" : "meter"}
        role="meter"
        aria-label={`${name} left`}
        aria-valuemin={0}
        aria-valuemax={of}
        aria-valuenow={left}
      >
        <span style={{ transform: `scaleX(${part})` }} />
      </span>
      {about !== undefined && <span class="quiet small-text">{about}</span>}
    </div>
  );
}
