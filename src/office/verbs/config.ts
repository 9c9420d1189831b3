// The configuration file of the running server: what stands in it, changes and their undoing.
import { diffInWords } from "../../core/line-diff.ts";
import { type ConfigEdited, editFields, type Editor, undoFields } from "../config-editing.ts";
import { type Actor, fleetVerb } from "../verb.ts";

function editorOf(actor: Actor): Editor {
  switch (actor.kind) {
    case "shell":
      return { name: `command line (${actor.user})`, isRemote: false };
    case "token":
      return { name: `token ${actor.name}`, isRemote: true };
    default:
      return { name: actor.account.email, isRemote: true };
  }
}

export const show = fleetVerb({
  name: "config show",
  summary: "Show what stands in the configuration file, without secrets",
  details: "Nodes, models, plans and what else of requests can change while the server runs, and the last changes.",
  scope: "read",
  run: (fleet) => fleet.config.show(),
  print: ({ file, problem, tables, changes }) =>
    [
      problem ?? `${file}`,
      ...tables.flatMap(({ name, keys, rows }) =>
        rows.flatMap((row) =>
          Object.entries(row.values).map(([key, value]) => {
            const isSecret = keys.some((each) => each.name === key && each.secret);
            return `${[name, row.name, key].filter((step) => step !== "").join(".")} = ${isSecret ? "…" : value}`;
          }),
        ),
      ),
      ...changes.map(({ at, by, what }) => `# ${at} ${by}: ${what.join("; ")}`),
    ].join("\n"),
});

const audit = {
  action: "server.config",
  detail: (_: unknown, { dry_run, what }: ConfigEdited) => (dry_run || what.length === 0 ? null : what.join("; ")),
} as const;

function print({ what, diff, applied, needs_restart, warnings, dry_run }: ConfigEdited): string {
  if (what.length === 0) return "Nothing is another.";
  return [
    diffInWords(diff),
    ...warnings.map((line) => `warning        ${line}`),
    `${dry_run ? "would apply  " : "applied      "}  ${applied.join(", ") || "nothing"}`,
    ...(needs_restart.length === 0 ? [] : [`needs restart  ${needs_restart.join(", ")}`]),
  ].join("\n");
}

export const edit = fleetVerb({
  name: "config edit",
  summary: "Change the configuration file and apply it, without a restart",
  details:
    "Its comments and order stay. It is checked as at a start, and nothing is written if something is wrong. config undo takes it back.",
  fields: editFields,
  scope: "all",
  audit,
  run: (fleet, { input, actor }) => fleet.config.edit(input, editorOf(actor)),
  print,
});

export const undo = fleetVerb({
  name: "config undo",
  summary: "Take the last change of config edit back, or of the console",
  fields: undoFields,
  scope: "all",
  audit,
  run: (fleet, { input }) => fleet.config.undo(input),
  print,
});

export default [show, edit, undo];
