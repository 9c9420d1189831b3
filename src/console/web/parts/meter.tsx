// A bar with numbers: how much of something there is.
import type { ComponentChildren, VNode } from "preact";
import { count } from "../format.ts";
import { t } from "../texts.ts";

type MeterProps = Readonly<{
  name: string;
  /** For screen readers. */
  label: string;
  value: number;
  of: number;
  /** Directly behind the total. */
  ofNote?: string;
  /** The bar warns. */
  isLow?: boolean;
  about?: ComponentChildren;
}>;

export function Meter({ name, label, value, of, ofNote = "", isLow = false, about }: MeterProps): VNode {
  return (
    <div class="meter-row">
      <div class="names">
        <span class="figure-name">{name}</span>
        <span class="number">
          {count(value)}{" "}
          <span class="quiet">
            {t("meter.of", { of: count(of) })}
            {ofNote}
          </span>
        </span>
      </div>
      <span
        class={isLow ? "meter low" : "meter"}
        role="meter"
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={of}
        aria-valuenow={value}
      >
        <span style={{ transform: `scaleX(${shareOf(value, of)})` }} />
      </span>
      {about !== undefined && <span class="quiet small-text">{about}</span>}
    </div>
  );
}

/** Below this share the bar warns. */
const lowShare = 0.15;

type LeftMeterProps = Readonly<{ name: string; left: number; of: number; about: ComponentChildren }>;

export const LeftMeter = ({ name, left, of, about }: LeftMeterProps): VNode => (
  <Meter
    name={name}
    label={t("meter.left", { name })}
    value={left}
    of={of}
    isLow={shareOf(left, of) < lowShare}
    about={about}
  />
);

const shareOf = (value: number, of: number): number => (of <= 0 ? 0 : Math.min(1, Math.max(0, value / of)));
