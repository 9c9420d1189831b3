// Reads a new password from a flag or from standard input, or makes one.
import { CommandError } from "../core/expected-error.ts";
import { passwordMaxLength, passwordMinLength } from "../core/limits.ts";

const generatedBytes = 15;

/** Random, 20 characters. */
export const generatedPassword = (): string =>
  crypto.getRandomValues(new Uint8Array(generatedBytes)).toBase64({ alphabet: "base64url" });

/** The first line of standard input, typed without echo on a terminal; null if it is empty. */
export async function readPassword(): Promise<string | null> {
  const password = process.stdin.isTTY ? await typed("New password (none: one is made): ") : await firstLine();
  if (password === "") return null;
  const problem = problemOf(password);
  if (problem !== null) throw new CommandError(`the password ${problem}`);
  return password;
}

function problemOf({ length }: string): string | null {
  if (length >= passwordMinLength && length <= passwordMaxLength) return null;
  return `must have ${passwordMinLength} to ${passwordMaxLength} characters, has ${length}`;
}

async function firstLine(): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const bytes of Bun.stdin.stream()) {
    text += decoder.decode(bytes, { stream: true });
    if (text.includes("\n") || text.length > 2 * passwordMaxLength) break;
  }
  return text.split(/\r?\n/, 1)[0]!;
}

/** Reads a line from the terminal without echo. Throws CommandError at Ctrl-C. */
async function typed(prompt: string): Promise<string> {
  process.stdin.setRawMode(true);
  process.stderr.write(prompt);
  try {
    let line = "";
    for await (const bytes of process.stdin) {
      for (const character of String(bytes)) {
        if (character === "\r" || character === "\n" || character === "\x04") return line;
        if (character === "\x03") throw new CommandError("the password is unchanged");
        if (character === "\x7f" || character === "\b") line = line.slice(0, -1);
        else line += character;
      }
    }
    return line;
  } finally {
    process.stdin.setRawMode(false);
    process.stderr.write("\n");
  }
}
