// One of a few options, as a row of buttons.
import type { VNode } from "preact";

type ChoiceProps<Option extends string> = Readonly<{
  name: string;
  options: Readonly<Record<Option, string>>;
  /** Null: something else. */
  chosen: Option | null;
  onChoose: (option: Option) => void;
}>;

export const Choice = <Option extends string>({ name, options, chosen, onChoose }: ChoiceProps<Option>): VNode => (
  <div class="segments" role="group" aria-label={name}>
    {(Object.entries(options) as [Option, string][]).map(([option, caption]) => (
      <button key={option} type="button" aria-pressed={option === chosen} onClick={() => onChoose(option)}>
        {caption}
      </button>
    ))}
  </div>
);
