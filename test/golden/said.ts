// What an answer says, derived from its pieces alone.
import type { AnyDialectName } from "./dialects.ts";
import type { Answer } from "./player.ts";

/** All of its text; chat-completions has one string for it, in which rounds are paragraphs. `asForm`: texts are one. */
export function saidIn(name: AnyDialectName, { steps }: Pick<Answer, "steps">, asForm = false): string {
  const rounds: string[] = [""];
  for (const step of steps) {
    const isText = step.kind === "text" || (step.kind === "refusal" && name === "messages" && !asForm);
    if (isText) rounds.push(rounds.pop()! + (JSON.parse(step.literal) as string));
    else if (step.kind === "owned-call") rounds.push("");
  }
  return rounds.filter((said) => said !== "").join(name === "chat" ? "\n\n" : "");
}
