// A choice of one value from a list.
import type { ComponentProps, VNode } from "preact";

type SelectProps = Pick<ComponentProps<"select">, "aria-describedby" | "aria-invalid" | "aria-label" | "id"> &
  Readonly<{
    value: string;
    /** Values, with a caption where the value itself is none. */
    options: readonly (string | readonly [value: string | number, caption: string])[];
    /** The caption of the empty value; absent: there is none. */
    all?: string;
    /** The caption of a value that is none of the options; without it, the list would show another one. */
    other?: string;
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
