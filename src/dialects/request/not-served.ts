// What a request may ask for that is not here, although its answer depends on it: files uploaded elsewhere, and tools that
// another server would run. Answered without, it would be wrong and billed all the same, so it is refused by name. What an
// answer does not depend on, agents send of themselves; that is ignored.
import { Type } from "@sinclair/typebox";
import type { Refusal } from "../../core/types.ts";
import { malformed } from "./field.ts";

/** A field that must be left out, or null; `why` goes on after "must be left out: ". */
export const leftOut = (why: string) => Type.Optional(Type.Null({ description: `left out: ${why}` }));

/** `at` is the field that refers to the file, `instead` what to send. */
export const fileNotHere = (at: string, instead: string): Refusal =>
  malformed(`${at}: uploaded files are not kept here; send ${instead}`);

/** By the beginning of their types, which the messages dialect dates. */
const hostedTools = ["file_search", "code_interpreter", "code_execution", "web_fetch", "mcp"];

/**
 * The refusal of a tool that its server runs out of the client's sight. Those that a client runs itself (a shell, an
 * editor, a computer) and those that agents always send (image_generation, tool_search) are not among them.
 */
export function hostedToolNotRun({ type }: Readonly<Record<string, unknown>>, at: string): Refusal | null {
  const hosted = typeof type === "string" && hostedTools.some((name) => type === name || type.startsWith(`${name}_`));
  return hosted ? malformed(`${at}: a tool of type ${type} is not run here; offer a function that you run`) : null;
}

/** `choice` is what must be called, as the request says it. */
export const nothingToCall = (choice: string): Refusal =>
  malformed(`tool_choice ${choice}: none of the tools given can be called here`);
