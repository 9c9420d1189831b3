// One result of `tollgate doctor`.
import { visibleLine } from "../core/visible.ts";

export type Finding = Readonly<{
  /** The subject in a word or two: "data folder". */
  what: string;
  /** `warning`: a server works, but perhaps not as intended; `problem`: it cannot keep its promises. */
  level: "ok" | "warning" | "problem";
  /** The finding, and what to do about it. */
  detail: string;
}>;

export const ok = (what: string, detail: string): Finding => ({ what, level: "ok", detail });
export const warning = (what: string, detail: string): Finding => ({ what, level: "warning", detail });
export const problem = (what: string, detail: string): Finding => ({ what, level: "problem", detail });

const marks = { ok: "ok     ", warning: "WARNING", problem: "PROBLEM" } as const;

export const findingLine = ({ what, level, detail }: Finding): string =>
  `${marks[level]}  ${what.padEnd(14)}  ${visibleLine(detail)}`;
