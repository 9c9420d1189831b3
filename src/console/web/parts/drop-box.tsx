// Takes files that are dropped on it.
import type { ComponentChildren, VNode } from "preact";
import { useState } from "preact/hooks";

type DropBoxProps = Readonly<{
  class: string;
  onFiles: (files: FileList | undefined) => void;
  children: ComponentChildren;
}>;

export function DropBox({ class: look, onFiles, children }: DropBoxProps): VNode {
  const [dropping, setDropping] = useState(false);
  return (
    <div
      class={dropping ? `${look} dropping` : look}
      onDragOver={(event) => {
        event.preventDefault();
        setDropping(true);
      }}
      onDragLeave={() => setDropping(false)}
      onDrop={(event) => {
        event.preventDefault();
        setDropping(false);
        onFiles(event.dataTransfer?.files);
      }}
    >
      {children}
    </div>
  );
}
