// A dialog that asks for a name and nothing else.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { Action } from "../resource.ts";
import { FormDialog } from "./asking-dialogs.tsx";
import { TextField } from "./field.tsx";

type NameDialogProps = Readonly<{
  title: string;
  label?: string;
  hint?: string;
  name?: string;
  maxLength: number;
  isOptional?: boolean;
  caption: string;
  onName: (name: string) => Promise<void>;
  onClose: () => void;
  end?: (action: Action) => VNode;
}>;

export function NameDialog(props: NameDialogProps): VNode {
  const { title, label = "Name", hint, name: before = "", maxLength, caption, onName, onClose, end } = props;
  const { isOptional = false } = props;
  const [name, setName] = useState(before);
  return (
    <FormDialog
      title={title}
      submit={caption}
      onSubmit={async () => {
        await onName(name.trim());
        onClose();
      }}
      onClose={onClose}
      end={end}
    >
      <TextField
        label={label}
        hint={hint}
        required={!isOptional}
        pattern={isOptional ? undefined : ".*\\S.*"}
        maxLength={maxLength}
        autocomplete="off"
        autofocus
        value={name}
        onValue={setName}
      />
    </FormDialog>
  );
}
