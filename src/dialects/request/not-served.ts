// What a request may refer to that does not exist here although its answer depends on it: tools that another server would run. An answer without them would be wrong and still billed, so they are refused by
// name. Things that an answer does not depend on, and that agents send by default, are ignored.
import { Type } from "@sinclair/typebox";
import type { Refusal } from "../../core/types.ts";
import { malformed } from "./field.ts";

/** A field that must be left out, or null; `why` continues "must be left out: ". */
export const leftOut = (why: string) => Type.Optional(Type.Null({ description: `left out: ${why}` }));

/** By the beginnings of their types, which the messages dialect dates. */
const hostedTools = ["file_search", "code_interpreter", "code_execution", "web_fetch", "mcp"];

/** The refusal of a tool that its server runs unseen; tools of clients, or that agents always send, are none. */
export function hostedToolNotRun({ type }: Readonly<Record<string, unknown>>, at: string): Refusal | null {
  const hosted = typeof type === "string" && hostedTools.some((name) => type === name || type.startsWith(`${name}_`));
  return hosted ? malformed(`${at}: a tool of type ${type} is not run here; offer a function that you run`) : null;
}

/** `choice`: what must be called, in the request's words. */
export const nothingToCall = (choice: string): Refusal =>
  malformed(`tool_choice ${choice}: none of the tools given can be called here`);
