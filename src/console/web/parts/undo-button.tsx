// A button whose change can be taken back: it asks nothing, and offers the way back.
import type { VNode } from "preact";
import { undoable } from "../request.ts";
import { useAction } from "../resource.ts";
import { Button } from "./button.tsx";
import { toast, toastWithUndo } from "./toasts.tsx";

type UndoButtonProps = Readonly<{
  caption: string;
  /** The button's name for screen readers, where the caption alone is unclear. */
  label?: string | undefined;
  class?: string;
  disabled?: boolean;
  hint?: string | undefined;
  /** Said when it is done. */
  done: string;
  act: () => Promise<unknown>;
  /** Also after it was taken back. */
  onChanged: () => unknown;
}>;

export function UndoButton({
  caption,
  label,
  class: look,
  hint,
  disabled,
  done,
  act,
  onChanged,
}: UndoButtonProps): VNode {
  const action = useAction();
  const press = async (): Promise<void> => {
    try {
      const takeBack = await undoable(act);
      toastWithUndo(done, () => takeBack().then(onChanged));
      onChanged();
    } catch (error) {
      toast((error as Error).message, "failed");
    }
  };
  return (
    <Button
      caption={caption}
      class={look}
      aria-label={label}
      title={hint}
      disabled={disabled}
      busy={action.busy}
      onClick={() => void action.run(press)}
    />
  );
}
