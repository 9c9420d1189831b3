// A choice of one value from a list.
import type { ComponentProps, VNode } from "preact";

/** Values, with a caption where the value itself is none. */
export type SelectOptions = readonly (string | readonly [value: string | number, caption: string])[];

type SelectProps = Pick<ComponentProps<"select">, "aria-describedby" | "aria-invalid" | "aria-label" | "id"> &
  Readonly<{
    value: string;
    options: SelectOptions;
    /** The caption of the empty value; absent: there is none. */
    all?: string;
    /** The caption of a value that is none of the options; without it, the list would show another one. */
    other?: string | undefined;
    onValue: (value: string) => void;
  }>;

export function Select({ value, options, all, other = value, onValue, ...select }: SelectProps): VNode {
  const named = options.map((option) => (typeof option === "string" ? ([option, option] as const) : option));
  const isKnown = value === "" || named.some(([each]) => String(each) === value);
  return (
    <select {...select} value={value} onChange={(event) => onValue(event.currentTarget.value)}>
      {all !== undefined && <option value="">{all}</option>}
      {[...(isKnown ? [] : [[value, other] as const]), ...named].map(([each, caption]) => (
        <option key={each} value={each}>
          {caption}
        </option>
      ))}
    </select>
  );
}
