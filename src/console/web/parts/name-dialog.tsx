// A dialog that asks for a name and nothing else.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { type Action, useAction } from "../resource.ts";
import { Dialog } from "./dialog.tsx";
import { DialogFormEnd } from "./dialog-form-end.tsx";
import { Field } from "./field.tsx";

type NameDialogProps = Readonly<{
  title: string;
  label?: string;
  hint?: string;
  /** The name so far. */
  name?: string;
  maxLength: number;
  /** What the sending button says. */
  caption: string;
  onName: (name: string) => Promise<void>;
  onClose: () => void;
  /** In the place of the usual buttons. */
  end?: (action: Action) => VNode;
}>;

/** Closes when the name was taken. */
export function NameDialog(props: NameDialogProps): VNode {
  const { title, label = "Name", hint, name: before = "", maxLength, caption, onName, onClose, end } = props;
  const [name, setName] = useState(before);
  const action = useAction();
  return (
    <Dialog title={title} onClose={onClose}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          event.stopPropagation(); // it may stand in a form of the page
          void action.run(() => onName(name.trim())).then((done) => done && onClose());
        }}
      >
        <Field label={label} hint={hint}>
          {(control) => (
            <input
              {...control}
              type="text"
              required
              pattern=".*\S.*"
              maxLength={maxLength}
              autocomplete="off"
              autofocus
              value={name}
              onInput={(event) => setName(event.currentTarget.value)}
            />
          )}
        </Field>
        {end?.(action) ?? (
          <DialogFormEnd action={action} onCancel={onClose}>
            {caption}
          </DialogFormEnd>
        )}
      </form>
    </Dialog>
  );
}
