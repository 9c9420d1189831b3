// A button that downloads an account's data.
import type { ComponentChildren, VNode } from "preact";
import { download, type FilePath } from "../request.ts";
import { useAction } from "../resource.ts";
import { FormError } from "./field.tsx";
import { Icon } from "./icons.tsx";

type ExportButtonProps = Readonly<{
  path: FilePath;
  children: ComponentChildren;
}>;

export function ExportButton({ path, children }: ExportButtonProps): VNode {
  const action = useAction();
  return (
    <>
      <FormError message={action.error} />
      <div>
        <button
          type="button"
          class="button"
          aria-busy={action.busy}
          disabled={action.busy}
          onClick={() => void action.run(() => download(path))}
        >
          <Icon name="download" size={16} /> {children}
        </button>
      </div>
    </>
  );
}
