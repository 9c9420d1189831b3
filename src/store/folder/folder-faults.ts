// What can be wrong with a data folder, and how the system says it.

/** Another running process works on the data folder. */
export class DataFolderInUse extends Error {
  override readonly name = "DataFolderInUse";
  constructor(folder: string) {
    super(`the data folder ${folder} is in use by another running tollgate`);
  }
}

/** The data folder cannot be made, written or understood; the message is one line for the operator. */
export class DataFolderUnusable extends Error {
  override readonly name = "DataFolderUnusable";
}

export function codeOf(thrown: unknown): string {
  return thrown instanceof Error && "code" in thrown ? String(thrown.code) : "";
}

export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
