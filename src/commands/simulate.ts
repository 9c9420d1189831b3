// tollgate simulate: draws in a terminal, and into a file for --svg.
import { CommandError } from "../core/expected-error.ts";
import { simulate, simulationInWords } from "../office/verbs/simulation.ts";
import { type Invocation, textFlag } from "./command.ts";
import { perform } from "./perform.ts";
import { simulationSvg } from "./simulation-svg.ts";
import { inputOf } from "./verb-input.ts";

const barWidth = 24;
const levels = "▁▂▃▄▅▆▇█";

export default async function simulateOnce(invocation: Invocation): Promise<number> {
  const { flags } = invocation;
  const file = textFlag(flags, "svg");
  const found = await perform(invocation, simulate, inputOf(simulate, invocation));
  if (file !== undefined) {
    await Bun.write(file, simulationSvg(found)).catch((error: Error) => {
      throw new CommandError(`--svg ${file}: ${error.message}`, { cause: error });
    });
  }
  if (flags["json"] === true) console.log(JSON.stringify(found));
  else console.log(simulationInWords(found, process.stdout.isTTY ? { bar, line } : null));
  return 0;
}

const bar = (value: number, most: number): string => "█".repeat(Math.round((barWidth * value) / Math.max(1, most)));

/** A gap where no request came. */
function line(numbers: readonly (number | null)[], most: number): string {
  const level = (number: number): string =>
    levels[Math.min(levels.length - 1, Math.floor((levels.length * number) / Math.max(1, most)))]!;
  return numbers.map((number) => (number === null ? " " : level(number))).join("");
}
