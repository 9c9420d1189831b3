// All that commands print goes through here: names and words of nodes, clients, servers and services among it do nothing to
// the terminal.
import { inspect } from "bun";
import { visible } from "../core/visible.ts";

/** From here on. */
export function guardTerminal(): void {
  for (const channel of ["log", "error", "warn"] as const) {
    const print = console[channel].bind(console);
    console[channel] = (...said: readonly unknown[]) =>
      print(said.map((each) => visible(typeof each === "string" ? each : inspect(each))).join(" "));
  }
}
