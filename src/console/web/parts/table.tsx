// A table that scrolls sideways; on a phone, each row of one with a caption is a small card.
import type { ComponentChildren, ComponentProps, VNode } from "preact";
import { t } from "../texts.ts";

/** Figures are aligned to the right. */
type Column = string | VNode | Readonly<{ figure: string | VNode; hidden?: boolean }>;

export const figures = (...names: readonly string[]): readonly Column[] => names.map((figure) => ({ figure }));

/** Above buttons. */
export const buttonColumn = (): VNode => (
  <span key="actions" class="for-readers">
    {t("common.actions")}
  </span>
);

type TableProps = ComponentProps<"div"> &
  Readonly<{
    columns: readonly Column[];
    caption?: string;
    /** The table's class. */
    look?: string | undefined;
    /** Columns that only wide windows show. */
    widestOnly?: readonly string[];
    children: ComponentChildren;
  }>;

export function Table({ columns, caption, look, widestOnly = [], children, ...scroller }: TableProps): VNode {
  return (
    <div class="table-scroll" {...scroller}>
      <table class={look ?? (caption === undefined ? undefined : "cards")}>
        {caption !== undefined && <caption class="for-readers">{caption}</caption>}
        <thead>
          <tr>
            {columns.map((column, index) => {
              const { figure = null, hidden } = typeof column === "object" && "figure" in column ? column : {};
              const name = figure ?? (column as string | VNode);
              const kinds = [figure !== null && "number", widestOnly.includes(String(name)) && "widest-only"];
              return (
                <th key={index} scope="col" class={kinds.filter(Boolean).join(" ") || undefined} hidden={hidden}>
                  {name}
                </th>
              );
            })}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}
