// What leads from figures over time to the requests that they count.
import type { ComponentChildren, VNode } from "preact";
import type { OverTime } from "../../../api/over-time.ts";
import { inLog } from "../../parts/over-time.tsx";
import { rich } from "../../texts.ts";

export const countedIn =
  (only: Readonly<{ model?: string; node?: string }>) =>
  (answer: OverTime): VNode => {
    const { course, total } = answer;
    const to = (reason: string) => (inner: ComponentChildren) => (
      <a href={inLog(answer, { ...only, reason })}>{inner}</a>
    );
    // What nodes answered is counted by itself.
    const charged = { requests: total.requests, charged: to(only.node === undefined ? "charged" : "served") };
    if (course === null) return <p>{rich("activity.in_log_charged", charged)}</p>;
    const [refused = 0, failed = 0, left = 0] = (["refused", "failed", "left"] as const).map(
      (each) => course.total[each][0] ?? 0,
    );
    const links = { broken: to("broken"), gone: to("left"), denied: to("refused") };
    return <p>{rich("activity.in_log", { ...charged, refused, failed, left, ...links })}</p>;
  };
