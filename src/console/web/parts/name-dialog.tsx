// A dialog that asks for a name and nothing else.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { FormDialog } from "./asking-dialogs.tsx";
import { t } from "../texts.ts";
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
}>;

export function NameDialog(props: NameDialogProps): VNode {
  const { title, label = t("common.name"), hint, name: before = "", maxLength, caption, onName, onClose } = props;
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
