// Runs a verb of the office for the signed-in account.
import { CommandError } from "../core/expected-error.ts";
import type { Actor, Verb } from "../office/verb.ts";
import type { ConsoleParts } from "./parts.ts";
import { type Call, fail, type Failure } from "./routes/route.ts";

type SignedInCall = Pick<Call<"account" | "operator">, "visitor" | "address"> & Partial<Pick<Call, "undoable">>;

/** `kind`: as an operator, or for the own account. Rejects with an error in words. */
export const ask = <Input, Result>(
  { work }: Pick<ConsoleParts, "work">,
  kind: Exclude<Actor["kind"], "shell" | "token">,
  { visitor, address, undoable = (office) => office }: SignedInCall,
  verb: Verb<Input, Result>,
  input: Input,
): Promise<Result> =>
  verb.run(
    { ...work, office: undoable(work.office) },
    { actor: { kind, ...visitor, address }, input, progress: () => {} },
  );

/** Turns a verb's error into a failure with this code. */
export const failedAs =
  (code: Failure["failure"]) =>
  (thrown: unknown): Failure => {
    if (thrown instanceof CommandError) return fail(code, `${thrown.message}.`);
    throw thrown;
  };
