// The head of a table: columns of text, then columns of figures, which are aligned to the right.
import type { VNode } from "preact";

type TableHeadProps = Readonly<{
  texts: readonly string[];
  figures: readonly string[];
  /** Columns that only wide windows show. */
  widestOnly?: readonly string[];
}>;

export function TableHead({ texts, figures, widestOnly = [] }: TableHeadProps): VNode {
  const column = (name: string, kind: string): VNode => {
    const names = `${kind} ${widestOnly.includes(name) ? "widest-only" : ""}`.trim();
    return (
      <th key={name} scope="col" class={names === "" ? undefined : names}>
        {name}
      </th>
    );
  };
  return (
    <thead>
      <tr>
        {texts.map((name) => column(name, ""))}
        {figures.map((name) => column(name, "number"))}
      </tr>
    </thead>
  );
}
