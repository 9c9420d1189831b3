// The time left until a moment, counted down each second.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { now } from "../clock.ts";
import { duration, utc } from "../format.ts";
import { useEvery } from "../resource.ts";

const tickMs = 1_000;

export function Countdown({ to }: { to: string }): VNode {
  const [time, setTime] = useState(now());
  useEvery(tickMs, () => setTime(now()));
  return (
    <time class="number" dateTime={to} title={utc(to)}>
      {duration(new Date(to).getTime() - time)}
    </time>
  );
}
