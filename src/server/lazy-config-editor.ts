// The editing of the configuration file, loaded when somebody asks for it.
import type { ConfigEditing } from "../office/config-editing.ts";
import type { EditorParts } from "./config-editor.ts";

export function lazyConfigEditor(parts: EditorParts): ConfigEditing {
  let made: Promise<ConfigEditing> | null = null;
  const editor = () => (made ??= import("./config-editor.ts").then(({ ConfigEditor }) => new ConfigEditor(parts)));
  return {
    show: async () => (await editor()).show(),
    edit: async (changes, by) => (await editor()).edit(changes, by),
    undo: async (how) => (await editor()).undo(how),
  };
}
