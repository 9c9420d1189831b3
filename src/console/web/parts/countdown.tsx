// The time left until a moment, counted down each second.
import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { now } from "../clock.ts";
import { duration, utc } from "../format.ts";

const tickMs = 1_000;

export function Countdown({ to }: { to: string }): VNode {
  const [time, setTime] = useState(now());
  useEffect(() => {
    const timer = setInterval(() => setTime(now()), tickMs);
    return () => clearInterval(timer);
  }, []);
  return (
    <time class="number" dateTime={to} title={utc(to)}>
      {duration(new Date(to).getTime() - time)}
    </time>
  );
}
