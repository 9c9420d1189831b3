// A dialog that asks for a name and nothing else.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { FormDialog } from "./asking-dialogs.tsx";
import { t } from "../texts.ts";
import { TextField } from "./field.tsx";

type NameDialogProps = Readonly<{
  title: string;
  hint?: string;
  name?: string;
  maxLength: number;
  caption: string;
  onName: (name: string) => Promise<void>;
  onClose: () => void;
}>;

export function NameDialog(props: NameDialogProps): VNode {
  const { title, hint, name: before = "", maxLength, caption, onName, onClose } = props;
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
        label={t("common.name")}
        hint={hint}
        required
        pattern=".*\S.*"
        maxLength={maxLength}
        autocomplete="off"
        autofocus
        value={name}
        onValue={setName}
      />
    </FormDialog>
  );
}
