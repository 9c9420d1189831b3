// What an account used and bought in a month, as a paper: for people who are billed or who book it.
import { type Static, type TObject, Type } from "@sinclair/typebox";
import { costUsd } from "../../account/money/price.ts";
import type { AccountRecord } from "../../account/records.ts";
import { csvLine } from "../../core/csv.ts";
import type { RequestLogQueries } from "../../core/request-log.ts";
import { CommandError } from "../../core/expected-error.ts";
import { text } from "../fields.ts";
import { formatPairs, formatTable } from "../table.ts";
import { accountVerb } from "../verb.ts";
import type { Work } from "../work.ts";
import { periodsOf, report, reported, type Sums, summedUp } from "./report.ts";

const linesMax = 10_000;

const fields = {
  month: text("A month such as 2026-10.", "MONTH"),
  time_zone: Type.Optional(text("Whose month, such as Europe/Berlin; usually UTC.", "ZONE")),
  csv: Type.Optional(Type.Boolean({ description: "Print CSV." })),
  html: Type.Optional(Type.Boolean({ description: "Print a page for a browser, which prints it or saves it as PDF." })),
};
type Input = Static<TObject<typeof fields>>;

export type Statement = Readonly<{
  account: string;
  account_id: number;
  /** Those that anything of it was booked to. */
  cost_centers: readonly string[];
  month: string;
  /** From the first moment of the month to before the last. */
  from: string;
  until: string;
  time_zone: string;
  /** The month is over: the statement stays as it is. */
  closed: boolean;
  /** The most expensive first. */
  lines: readonly (Readonly<{ cost_center: string | null; model: string }> & Sums)[];
  total: Sums;
  /** In balance tokens. */
  credits: readonly Readonly<{ time: string; tokens: number; usd: number }>[];
  credit_total: Readonly<{ tokens: number; usd: number }>;
}>;

export const statement = accountVerb({
  name: "statement",
  summary: "Print what an account used in a month, and the credit it got",
  details: "A month that is over stays as it is, whatever becomes of prices, cost centers and old lines.",
  fields,
  scope: "read",
  problem: ({ month, time_zone }) => report.problem!({ month, ...(time_zone !== undefined && { time_zone }) }),
  run: (work, { account, input }) => statementOf(work, account, input),
  print(made, { csv, html }) {
    if (html === true) return statementHtml(made).trimEnd();
    if (csv === true) return statementCsv(made).replaceAll("\r", "").trimEnd();
    return [
      formatPairs([
        ["account", made.account],
        ["cost center", made.cost_centers.join(", ") || "none"],
        ["month", `${made.month} (${made.time_zone})${made.closed ? "" : ", not over yet"}`],
      ]),
      formatTable(
        ["cost center", "model", "requests", "input", "cached", "output", "billed", "cost USD"],
        [
          ...made.lines.map((line) => [line.cost_center ?? "", line.model, ...sumCells(line)]),
          ["total", "", ...sumCells(made.total)],
        ],
      ),
      formatTable(
        ["credit added", "balance tokens", "USD"],
        [
          ...made.credits.map(({ time, tokens, usd }) => [time, tokens, usd]),
          ["total", made.credit_total.tokens, made.credit_total.usd],
        ],
      ),
    ].join("\n\n");
  },
});

export default [statement];

/** Throws CommandError where folded days would be cut. */
export async function statementOf(
  work: Pick<Work, "office" | "usage"> & Readonly<{ requestLog: RequestLogQueries }>,
  { id, email }: Pick<AccountRecord, "id" | "email">,
  { month, time_zone = "UTC" }: Pick<Input, "month" | "time_zone">,
): Promise<Statement> {
  const by = ["cost_center", "model"];
  const [period] = periodsOf({ month, time_zone }, []);
  const { from, until } = period!;
  const [rows, bought] = await Promise.all([
    reported(work, { month, time_zone, by }, id, linesMax),
    work.requestLog.credits(id, from, until, linesMax + 1),
  ]);
  if (bought.length > linesMax) throw new CommandError(`credit was added more than ${linesMax} times`);
  const tokens = bought.reduce((sum, credit) => sum + credit.tokens, 0);
  const lines = rows.map(({ cost_center = null, model, ...sums }) => ({ cost_center, model: model ?? "", ...sums }));
  return {
    account: email,
    account_id: id,
    cost_centers: [...new Set(lines.flatMap(({ cost_center }) => cost_center ?? []))].sort(),
    month,
    from: timeOf(from),
    until: timeOf(until),
    time_zone,
    closed: until <= Temporal.Now.instant().epochMilliseconds,
    lines,
    total: summedUp(rows),
    credits: bought.map((credit) => ({ time: timeOf(credit.at), tokens: credit.tokens, usd: costUsd(credit.tokens) })),
    credit_total: { tokens, usd: costUsd(tokens) },
  };
}

const timeOf = (at: number): string => new Date(at).toISOString();
const sumCells = ({ requests, input, cached, output, billed, cost_usd }: Sums): readonly number[] => [
  ...[requests, input, cached, output, billed, cost_usd],
];

/** A line of the kind `total` is the sum of the lines before it. */
export function statementCsv({ account, month, lines, total, credits, credit_total }: Statement): string {
  const none = [null, null, null, null];
  const head = ["requests", "input", "cached", "output", "balance_tokens", "usd"];
  return [
    ["account", "month", "kind", "cost_center", "model", "time", ...head],
    ...lines.map((line) => [account, month, "use", line.cost_center, line.model, null, ...sumCells(line)]),
    [account, month, "total use", null, null, null, ...sumCells(total)],
    ...credits.map(({ time, tokens, usd }) => [account, month, "credit", null, null, time, ...none, tokens, usd]),
    [account, month, "total credit", null, null, null, ...none, credit_total.tokens, credit_total.usd],
  ]
    .map(csvLine)
    .join("");
}

const whole = (value: number): string => value.toLocaleString("en-US");
const dollars = (value: number): string =>
  `$${value.toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 6 })}`;

/** A page without scripts, which needs nothing else, on A4 and letter. */
export function statementHtml(made: Statement): string {
  const { account, month, time_zone, closed, cost_centers, lines, total, credits, credit_total } = made;
  const name = new Date(`${month}-01`).toLocaleDateString("en-US", { month: "long", year: "numeric", timeZone: "UTC" });
  const isFree = total.billed === 0 && credits.length === 0;
  const isSplit = cost_centers.length > 1 || (cost_centers.length === 1 && lines.some((line) => !line.cost_center));
  const last = new Date(new Date(made.until).getTime() - 1);
  const dayOf = (time: string | Date): string =>
    new Date(time).toLocaleDateString("en-US", { dateStyle: "long", timeZone: time_zone });
  const texts = (values: readonly string[], tag = "td"): string =>
    values.map((value) => `<${tag}>${Bun.escapeHTML(value)}</${tag}>`).join("");
  const figures = (values: readonly (number | string)[], tag = "td"): string =>
    values.map((value) => `<${tag} class="n">${typeof value === "number" ? whole(value) : value}</${tag}>`).join("");
  const table = (names: readonly string[], numbers: readonly string[], rows: readonly string[], total: string) =>
    `<table>
<thead><tr>${texts(names, "th")}${figures(numbers, "th")}</tr></thead>
<tbody>
${rows.map((row) => `<tr>${row}</tr>`).join("\n")}
</tbody>
<tfoot><tr><td>Total</td>${total}</tr></tfoot>
</table>`;
  const sums = ({ requests, input, cached, output, billed, cost_usd }: Sums): string =>
    figures([requests, input, cached, output, ...(isFree ? [] : [billed, dollars(cost_usd)])]);
  const money = ["Balance tokens", "US dollars"];
  const use = table(
    ["Model"],
    ["Requests", "Input", "Cached", "Output", ...(isFree ? [] : money)],
    [...Map.groupBy(lines, (line) => line.cost_center)].flatMap(([costCenter, booked]) => [
      ...(isSplit ? [`<th colspan="${isFree ? 5 : 7}">${Bun.escapeHTML(costCenter ?? "No cost center")}</th>`] : []),
      ...booked.map((line) => texts([line.model]) + sums(line)),
    ]),
    sums(total),
  );
  const bought = table(
    ["Added on"],
    money,
    credits.map(({ time, tokens, usd }) => texts([dayOf(time)]) + figures([tokens, dollars(usd)])),
    figures([credit_total.tokens, dollars(credit_total.usd)]),
  );
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Statement ${month} ${Bun.escapeHTML(account)}</title>
<style>${style}</style>
<h1>Statement for ${name}</h1>
${closed ? "" : '<p class="note">This month is not over yet: the sums grow.</p>\n'}<dl>
<dt>Account</dt><dd>${Bun.escapeHTML(account)}</dd>
<dt>Cost center</dt><dd>${Bun.escapeHTML(cost_centers.join(", ") || "none")}</dd>
<dt>Period</dt><dd>${dayOf(made.from)} to ${dayOf(last)} (${Bun.escapeHTML(time_zone)})</dd>
</dl>
<h2>Use by model</h2>
${lines.length === 0 ? "<p>Nothing was used.</p>" : use}
${credits.length === 0 ? "" : `<h2>Credit</h2>\n${bought}\n`}</html>
`;
}

const style = `
@page { margin: 18mm 14mm; @bottom-right { content: counter(page) " / " counter(pages); font: 9pt system-ui, sans-serif; } }
:root { color-scheme: light; }
body { font: 10pt/1.45 system-ui, sans-serif; color: #111; background: #fff; max-width: 190mm; margin: 12mm auto; padding: 0 4mm; }
@media print { body { margin: 0; padding: 0; max-width: none; } }
h1 { font-size: 18pt; margin: 0 0 4mm; } h2 { font-size: 12pt; margin: 8mm 0 2mm; break-after: avoid; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 1mm 6mm; margin: 0; }
dt { color: #555; } dd { margin: 0; overflow-wrap: anywhere; } .note { color: #8a4b00; }
table { width: 100%; border-collapse: collapse; font-size: 8.5pt; } thead { display: table-header-group; } tfoot { display: table-row-group; }
th { text-align: left; font-weight: 600; } thead th { border-bottom: 0.4mm solid #111; }
tbody th { padding-top: 3mm; border-bottom: 0.1mm solid #bbb; break-after: avoid; } td:first-child { min-width: 20mm; } tr { break-inside: avoid; }
th, td { padding: 1mm 1mm 1mm 0; vertical-align: top; overflow-wrap: anywhere; } td { border-bottom: 0.1mm solid #bbb; }
.n { text-align: right; padding: 1mm 0 1mm 1.5mm; font-variant-numeric: tabular-nums; white-space: nowrap; overflow-wrap: normal; }
tfoot tr, tbody tr:last-child { break-before: avoid; }
tfoot td { font-weight: 600; border: 0; border-top: 0.4mm solid #111; }
`;
