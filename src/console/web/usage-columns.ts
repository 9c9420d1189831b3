// Computes the chart's columns: one for each of the last 30 days, with a part for each model.
import type { UsageSummary } from "../api/usage.ts";

const dayMs = 86_400_000;
export const days = 30;
/** Beyond the number of colors, all other models share one. */
const seriesMax = 5;
const others = "other models";

/** `tokens`: billed ones, or input and output if none was billed. */
type Part = Readonly<{ model: string; series: number; tokens: number; usd: number }>;
export type Column = Readonly<{ day: string; total: number; usd: number; requests: number; parts: readonly Part[] }>;

type Columns = Readonly<{ columns: readonly Column[]; models: readonly string[] }>;

/** If all models are free, billed tokens say nothing. */
export const isFree = ({ days }: UsageSummary): boolean =>
  days.length > 0 && days.every(({ billed_tokens }) => billed_tokens === 0);

/** One column for each day, even without requests; the most expensive models get a color of their own. */
export function columnsOf(summary: UsageSummary): Columns {
  const free = isFree(summary);
  const tokensOf = ({ billed_tokens, input, output }: UsageSummary["days"][number]): number =>
    free ? input + output : billed_tokens;
  const byModel = new Map<string, number>();
  for (const row of summary.days) {
    byModel.set(row.model, (byModel.get(row.model) ?? 0) + tokensOf(row) + row.requests / 1e6);
  }
  const ranked = [...byModel].sort(([, a], [, b]) => b - a).map(([model]) => model);
  const models = ranked.length > seriesMax + 1 ? [...ranked.slice(0, seriesMax), others] : ranked;
  const first = Date.parse(summary.from);
  const columns = Array.from({ length: days }, (_, index): Column => {
    const day = new Date(first + index * dayMs).toISOString().slice(0, 10);
    const rows = summary.days.filter((row) => row.day === day);
    const parts = models.map((model, series): Part => {
      const own = rows.filter((row) => row.model === model || (model === others && !models.includes(row.model)));
      return {
        model,
        series,
        tokens: sum(own.map(tokensOf)),
        usd: sum(own.map((row) => row.cost_usd)),
      };
    });
    return {
      day,
      parts: parts.filter(({ tokens }) => tokens > 0),
      total: sum(parts.map(({ tokens }) => tokens)),
      usd: sum(parts.map(({ usd }) => usd)),
      requests: sum(rows.map((row) => row.requests)),
    };
  });
  return { columns, models };
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

/** The next round number that is not below the value and is easily halved. */
export function roundUp(value: number): number {
  if (value <= 0) return 1;
  const magnitude = 10 ** Math.floor(Math.log10(value));
  return magnitude * ([1, 1.2, 1.6, 2, 3, 4, 6, 8, 10].find((step) => step * magnitude >= value) ?? 10);
}
