// The configuration file as operators see and change it, without its secrets.
import { type Static, Type } from "@sinclair/typebox";
import { CommandError } from "../core/expected-error.ts";
import type { SchemaError } from "../core/schema-errors.ts";
import { repeated } from "./fields.ts";

const nullable = <Of extends Parameters<typeof Type.Union>[0][number]>(of: Of) => Type.Union([of, Type.Null()]);

export const ConfigKey = Type.Object({
  name: Type.String(),
  about: Type.String(),
  /** What holds without it. */
  otherwise: Type.String(),
  required: Type.Boolean(),
  /** As the file is checked with. */
  schema: Type.Record(Type.String(), Type.Unknown()),
  secret: Type.Boolean(),
  /** Why it cannot be changed here; null: it can. */
  fixed: nullable(Type.String()),
});
export type ConfigKey = Static<typeof ConfigKey>;

const ConfigRow = Type.Object({
  name: Type.String(),
  /** By key, as TOML; of secrets only that they are there. */
  values: Type.Record(Type.String(), Type.String()),
});

export const ConfigTable = Type.Object({
  name: Type.String(),
  is_list: Type.Boolean(),
  row_key: nullable(Type.String()),
  keys: Type.Array(ConfigKey),
  /** One where it is no list. */
  rows: Type.Array(ConfigRow),
});
export type ConfigTable = Static<typeof ConfigTable>;

export const ConfigShown = Type.Object({
  file: nullable(Type.String()),
  /** The gateway whose file it is, where several share a database. */
  gateway: nullable(Type.String()),
  /** Of the file as it was read: a change names it, and is refused where the file is another one by then. */
  hash: Type.String(),
  /** Why the file cannot be changed here; null: it can. */
  problem: nullable(Type.String()),
  tables: Type.Array(ConfigTable),
  /** What was changed here, newest first; the first one can be undone unless the file was edited since. */
  changes: Type.Array(Type.Object({ at: Type.String(), by: Type.String(), what: Type.Array(Type.String()) })),
  can_undo: Type.Boolean(),
});
export type ConfigShown = Static<typeof ConfigShown>;

const careful = {
  hash: Type.Optional(
    Type.String({
      description: "Only if the file is still the one with this hash.",
      placeholder: "HASH",
      maxLength: 64,
    }),
  ),
  dry_run: Type.Optional(Type.Boolean({ description: "Show what would change without changing anything." })),
};
export const editFields = {
  set: Type.Optional(
    repeated("PATH=VALUE", "Another value, such as nodes.gpu-1.slots=8; without a value, the key is taken out."),
  ),
  add: Type.Optional(repeated("PATH", "A new row, such as nodes.gpu-2.")),
  remove: Type.Optional(repeated("PATH", "A row to take out, such as nodes.gpu-2.")),
  ...careful,
};
export const undoFields = careful;
export const ConfigEdit = Type.Object(editFields, { additionalProperties: false });
export type ConfigEdit = Static<typeof ConfigEdit>;
export const ConfigUndo = Type.Object(undoFields, { additionalProperties: false });
export type ConfigUndo = Static<typeof ConfigUndo>;

export const ConfigEdited = Type.Object({
  file: Type.String(),
  hash: Type.String(),
  what: Type.Array(Type.String()),
  diff: Type.Array(Type.Object({ sign: nullable(Type.String()), text: Type.String() })),
  applied: Type.Array(Type.String()),
  needs_restart: Type.Array(Type.String()),
  /** Of a rehearsal: what `tollgate check` finds. */
  warnings: Type.Array(Type.String()),
  dry_run: Type.Boolean(),
});
export type ConfigEdited = Static<typeof ConfigEdited>;

/** Who changes the file; from elsewhere than the server's machine, less of it may be changed. */
export type Editor = Readonly<{ name: string; isRemote: boolean }>;

/** The file is another one than whoever wants to change it has seen. */
export class ConfigIsOther extends CommandError {}

/** What a start would refuse; `places`: the values that are wrong. */
export class ConfigIsWrong extends CommandError {
  constructor(
    message: string,
    readonly places: readonly SchemaError[],
  ) {
    super(message);
  }
}

/** The server's configuration file. Changes throw CommandError, and then nothing has changed. */
export interface ConfigEditing {
  show(): Promise<ConfigShown>;
  edit(changes: ConfigEdit, by: Editor): Promise<ConfigEdited>;
  undo(how: ConfigUndo): Promise<ConfigEdited>;
}
