// Reports and statements, as `tollgate report` and `tollgate statement` make them.
import { AccountError } from "../../account/people/accounts.ts";
import type { AccountRecord } from "../../account/records.ts";
import { CommandError } from "../../core/expected-error.ts";
import { problemWith } from "../../office/verb.ts";
import { type ReportInput, report, reportCsv, reported, reportSubject, type Row } from "../../office/verbs/report.ts";
import { statementCsv, statementHtml, statementOf } from "../../office/verbs/statement.ts";
import type { ReportQuery } from "../api/reports.ts";
import type { ConsoleParts } from "../parts.ts";
import { csvReply, privateHeaders } from "../reply.ts";
import { fail, type Failure, isFailure, type Route, route, sentence, type Visitor } from "./route.ts";

/** What a browser gets; the file has more. */
const shownRowsMax = 10_000;
const fileRowsMax = 200_000;

export function reportRoutes({ office, work }: Pick<ConsoleParts, "office" | "work">): Route[] {
  /** Null: all accounts. */
  const subjectOf = ({ account }: Visitor, wanted: string | undefined): Promise<AccountRecord | null> =>
    office.read((unit) => reportSubject(unit, account.operator ? null : account, wanted));

  async function rowsOf(visitor: Visitor, { by, account, ...query }: ReportQuery, rowsMax: number) {
    const given = Object.entries(query).filter(([, value]) => value !== "");
    const input: ReportInput = { ...Object.fromEntries(given), ...(by && { by: by.split(",") }) };
    const wrong = wrongWith(input);
    if (wrong !== null) return wrong;
    const subject = await subjectOf(visitor, account);
    return [input, await reported(work, input, subject?.id ?? null, rowsMax)] as const;
  }

  return [
    route("GET /reports", async ({ visitor, query }) => {
      const made = await explained(() => rowsOf(visitor, query, shownRowsMax));
      return isFailure(made) ? made : (made[1] as Row[]);
    }),

    route("GET /reports.csv", async ({ visitor, query }) => {
      const made = await explained(() => rowsOf(visitor, query, fileRowsMax));
      if (isFailure(made)) return made;
      const [input, rows] = made;
      return csvReply(reportCsv(rows, input), `report-${query.month ?? query.from ?? "month"}`);
    }),

    route("GET /statement", async ({ visitor, query: { month, time_zone = "UTC", account, form } }) => {
      const wrong = wrongWith({ month, time_zone });
      if (wrong !== null) return wrong;
      const made = await explained(async () => {
        const subject = (await subjectOf(visitor, account)) ?? visitor.account;
        return statementOf(work, subject, { month, time_zone });
      });
      if (isFailure(made)) return made;
      if (form === "csv") return csvReply(statementCsv(made), `statement-${month}`);
      const headers = { "content-type": "text/html; charset=utf-8", "content-security-policy": statementPolicy };
      return new Response(statementHtml(made), { headers: { ...privateHeaders, ...headers } });
    }),
  ];
}

/** The page has a style of its own, and nothing else. */
const statementPolicy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

function wrongWith(input: ReportInput): Failure | null {
  const wrong = problemWith(report, input);
  if (wrong === null) return null;
  return fail("invalid_request", sentence({ message: `${wrong.path.join(".")} ${wrong.problem}` }));
}

/** With what is wrong in words. */
export async function explained<Made>(make: () => Promise<Made | Failure>): Promise<Made | Failure> {
  try {
    return await make();
  } catch (thrown) {
    if (thrown instanceof CommandError || thrown instanceof AccountError)
      return fail("invalid_request", sentence(thrown));
    throw thrown;
  }
}
