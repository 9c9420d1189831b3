// [[managed_settings]]: what Claude Code does on machines that signed in, by the plan of the account.
import { jsonTable, names } from "./kinds.ts";
import { key, required, table } from "./rows.ts";

export type ManagedSettings = Readonly<ReturnType<typeof managedSettingsTable.read>>;

export const managedSettingsTable = table(
  {
    /** Null: of every plan. */
    plans: key("plans", names("plans"), {
      about: "Plans whose accounts get these settings; the first table that fits an account counts.",
      otherwise: null,
      shown: "all",
    }),
    settings: required("settings", jsonTable("a table of settings"), "As in Claude Code's `managed-settings.json`."),
  },
  (settings) => settings,
);
