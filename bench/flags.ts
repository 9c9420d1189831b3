// Command-line flags of the benchmarks: `--interval-ms 50` sets `intervalMs`; the default's type is the flag's type.
import { parseArgs } from "node:util";

export type FlagValues = Record<string, number | string | boolean>;

/**
 * The defaults overridden by `--quick` (values of `quick`) and then by the flags given.
 * Throws for an unknown flag or a number that is none.
 */
export function readFlags<const Defaults extends FlagValues>(
  defaults: Defaults,
  quick: Partial<Widened<Defaults>> = {},
  argv: readonly string[] = Bun.argv.slice(2),
): Widened<Defaults> {
  const options: Record<string, { type: "string" | "boolean" }> = { quick: { type: "boolean" } };
  for (const [name, value] of Object.entries(defaults)) {
    options[kebabCase(name)] = { type: typeof value === "boolean" ? "boolean" : "string" };
  }
  const given = parseArgs({ args: [...argv], options, strict: true }).values;
  const result: FlagValues = { ...defaults, ...(given["quick"] === true ? (quick as FlagValues) : {}) };
  for (const [name, value] of Object.entries(defaults)) {
    const text = given[kebabCase(name)];
    if (text === undefined) continue;
    result[name] = typeof value === "number" ? numberOf(name, String(text)) : text;
  }
  return result as Widened<Defaults>;
}

/** Literal types of the defaults widened to what a flag can hold. */
export type Widened<Values> = {
  [Name in keyof Values]: Values[Name] extends number ? number : Values[Name] extends boolean ? boolean : string;
};

function kebabCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

function numberOf(name: string, text: string): number {
  const value = Number(text);
  if (!Number.isFinite(value)) throw new Error(`--${kebabCase(name)} needs a number, not "${text}"`);
  return value;
}
