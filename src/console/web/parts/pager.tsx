// Pages through a list in which each page knows only the next one; the cursors of earlier pages are kept.
import type { VNode } from "preact";
import { t } from "../texts.ts";
import { Button } from "./button.tsx";

type PagerProps = Readonly<{
  /** For screen readers. */
  label: string;
  /** Cursors of the pages so far; the first page has none. */
  cursors: readonly string[];
  /** Cursor of the next page, or null on the last. */
  next: string | null;
  onMove: (cursors: readonly string[]) => void;
  /** Names of the two directions. */
  names?: readonly [back: string, forth: string];
}>;

export function Pager({
  label,
  cursors,
  next,
  onMove,
  names = [t("pager.newer"), t("pager.older")],
}: PagerProps): VNode | null {
  if (next === null && cursors.length === 0) return null;
  return (
    <nav class="table-foot" aria-label={label}>
      <span class="quiet">{t("pager.page", { page: cursors.length + 1 })}</span>
      <div class="row">
        <Button
          caption={names[0]}
          class="button small"
          disabled={cursors.length === 0}
          onClick={() => onMove(cursors.slice(0, -1))}
        />
        <Button
          caption={names[1]}
          class="button small"
          disabled={next === null}
          onClick={() => next !== null && onMove([...cursors, next])}
        />
      </div>
    </nav>
  );
}
