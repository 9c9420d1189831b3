// A moment as people read it, with the exact time as a tooltip.
import type { VNode } from "preact";
import { ago, utc } from "../format.ts";

type TimeProps = Readonly<{ at: string; shown?: (time: string) => string }>;

export const Time = ({ at, shown = ago }: TimeProps): VNode => (
  <time dateTime={at} title={utc(at)}>
    {shown(at)}
  </time>
);
