// The rows of files in PostgreSQL, for gateways that share their folder.
import { fileStatements, FileRowsIn, type FileValue } from "../files/file-rows.ts";
import { type Question, statement } from "../questions.ts";
import type { Database } from "./database.ts";

type Name = keyof typeof fileStatements;

const statements = Object.fromEntries(
  Object.entries(fileStatements).map(([name, sql]) => [
    name,
    statement(
      `${name} stored file`,
      sql
        .replaceAll(/:n(\d+)/g, "$$$1::text::bigint")
        .replaceAll(/:t(\d+)/g, "$$$1::text")
        .replaceAll(/:list(\d+)/g, "SELECT json_array_elements_text($$$1::text::json)"),
    ),
  ]),
) as Record<Name, Question>;

/** Sums see what others are about to add only one after the other. */
const lock = statement("lock stored files", "SELECT pg_advisory_xact_lock(hashtext('tollgate stored files'))");

export const fileRowsOf = (database: Database): FileRowsIn =>
  new FileRowsIn(
    <Row>(name: Name, ...values: readonly FileValue[]) =>
      database.change(async (send) => {
        if (name === "add") await send(lock);
        return send<Row>(statements[name], ...values);
      }),
    async () => {},
  );
