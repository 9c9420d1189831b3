// All output of commands goes through here, so that names and words of nodes, clients and services cannot control the
// terminal.
import { inspect } from "bun";
import { visible } from "../core/visible.ts";

export function guardTerminal(): void {
  for (const channel of ["log", "error", "warn"] as const) {
    const print = console[channel].bind(console);
    console[channel] = (...said: readonly unknown[]) =>
      print(said.map((each) => visible(typeof each === "string" ? each : inspect(each))).join(" "));
  }
}
