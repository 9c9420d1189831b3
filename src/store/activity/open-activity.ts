// The activity in a file of its own, as its Worker has it; a power cut may take the last rows.
import { activityLevels } from "./activity-sums.ts";
import { ActivityTables, countColumns } from "./activity-tables.ts";
import { type Beside, openBeside } from "../beside-ledger.ts";
import { SqliteQuestions } from "../questions.ts";

const table = `
  CREATE TABLE activity (
    step_ms INTEGER NOT NULL,
    kind TEXT NOT NULL,
    at INTEGER NOT NULL,
    name TEXT NOT NULL,
    ${countColumns.map((column) => `${column} INTEGER NOT NULL,`).join("\n    ")}
    -- JSON: pairs of a bucket and how many fell into it
    wait TEXT NOT NULL,
    first_token TEXT NOT NULL,
    PRIMARY KEY (step_ms, kind, at, name)
  ) STRICT, WITHOUT ROWID;
`;

const form: Beside = {
  name: "activity file",
  version: 3,
  tables: table,
  pragmas: ["synchronous = OFF"],
  upgrades: {
    // Each step had a table.
    2: ["minutes", "hours", "days"].reduce(
      (sql, name, level) =>
        `${sql} INSERT INTO activity SELECT ${activityLevels[level]!.stepMs}, * FROM ${name}; DROP TABLE ${name};`,
      table,
    ),
  },
};

/** Makes the file where there is none that can be read. Throws what SQLite throws. */
export const openActivity = (file: string) =>
  openBeside(file, null, form, (database) =>
    Object.assign(new ActivityTables(new SqliteQuestions(database)), { close: () => database.close() }),
  );
