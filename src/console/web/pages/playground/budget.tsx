// What the next request will cost, before it is sent: counted by the gateway's free quote, never guessed here.
import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { ConsoleModels } from "../../../api/overview.ts";
import { compact, count, dollars, worth } from "../../format.ts";
import { askApi, messageOf } from "../../request.ts";
import { numbers, sells } from "../../session.ts";
import { t } from "../../texts.ts";
import { modelsOf, type Picture, settings, type Turn } from "./conversation.ts";
import { answering, conversation } from "./kept.ts";
import { dialects } from "./stream.ts";
import { pathOf, type Replies, type Step, turnsOf } from "./tree.ts";

/** After the last key; longer for long conversations, which travel whole. */
const quietMs = 600;
const bytesPerMs = 500;

type Quote = Readonly<{
  model: string;
  input_tokens: number;
  exact: boolean;
  output_tokens_max: number;
  price_max: number;
  price_max_usd: number;
  coder_calls: number;
}>;
type Quoted = Readonly<{ quotes: readonly Quote[]; problem: string | null }>;

type BudgetProps = Readonly<{
  models: ConsoleModels | null;
  canSend: boolean;
  text: string;
  pictures: readonly Picture[];
}>;

export function Budget({ models, canSend, text, pictures }: BudgetProps): VNode | null {
  const path = pathOf(conversation.value);
  const draft: readonly Turn[] = text.trim() === "" && pictures.length === 0 ? [] : [{ role: "user", text, pictures }];
  const { quotes, problem } = useQuotes(path, draft, canSend);
  const left = numbers.value?.spendable;
  const spent = spentOf(path);
  const all = quotes.map((quote) => {
    const context = models?.models.find(({ id }) => id === quote.model)?.context_tokens ?? 0;
    return { ...quote, context, fits: context === 0 || quote.input_tokens < context };
  });
  const usd = all.reduce((sum, { price_max_usd }) => sum + price_max_usd, 0);
  const tokens = all.reduce((sum, { price_max }) => sum + price_max, 0);
  const tooLong = all.find(({ fits }) => !fits);
  const [first] = all;
  const isDear = left != null && tokens > left;
  const word =
    problem ??
    (tooLong !== undefined
      ? t("play.too_long", { model: tooLong.model, tokens: count(tooLong.input_tokens), most: count(tooLong.context) })
      : isDear
        ? t("play.too_dear", { most: dollars(usd), left: worth(left) })
        : null);
  const last = path.at(-1)?.turn;
  const lastUsd = last?.role === "replies" ? sumOf(last.lanes) : null;
  const parts = [
    first !== undefined &&
      t(first.exact ? "play.counted" : "play.estimated", {
        tokens: count(first.input_tokens),
        context: compact(first.context),
      }),
    sells.value && first !== undefined && t("play.at_most", { cost: usd === 0 ? t("play.free") : dollars(usd) }),
    sells.value && lastUsd !== null && t("play.last_cost", { cost: dollars(lastUsd) }),
    sells.value && spent > 0 && spent !== lastUsd && t("play.so_far", { cost: dollars(spent) }),
    left != null && t("play.left", { left: sells.value ? worth(left) : compact(left) }),
  ].filter((part) => part !== false);
  if (parts.length === 0 && word === null) return null;
  const about = all.map(({ model, input_tokens, output_tokens_max, price_max_usd }) =>
    t("play.quote_of", {
      model,
      input: count(input_tokens),
      output: count(output_tokens_max),
      cost: dollars(price_max_usd),
    }),
  );
  return (
    <div class="budget quiet small-text" role="status" title={about.join("\n")}>
      {word !== null && <p class="budget-word">{word}</p>}
      <p>
        {parts.map((part) => (
          <span key={part} class="number">
            {part}
          </span>
        ))}
      </p>
    </div>
  );
}

function sumOf(lanes: Replies["lanes"]): number | null {
  const known = lanes.flatMap((answer) => (answer?.costUsd == null ? [] : [answer.costUsd]));
  return known.length === 0 ? null : known.reduce((sum, cost) => sum + cost, 0);
}

const spentOf = (path: readonly Step[]): number =>
  path.reduce((sum, { turn }) => sum + (turn.role === "replies" ? (sumOf(turn.lanes) ?? 0) : 0), 0);

/** Of each chosen model, for the conversation as it stands; none while an answer is written. */
function useQuotes(path: readonly Step[], draft: readonly Turn[], canSend: boolean): Quoted {
  const [quoted, setQuoted] = useState<Quoted>({ quotes: [], problem: null });
  const asked = settings.value;
  const isWriting = answering.value;
  const [words] = draft;
  const key = words?.role === "user" ? words.text : "";
  const files = words?.role === "user" ? words.pictures.length : 0;
  useEffect(() => {
    const models = modelsOf(asked);
    if (isWriting || !canSend || path.length + draft.length === 0) return setQuoted({ quotes: [], problem: null });
    const controller = new AbortController();
    const dialect = dialects[asked.dialect];
    const bodies = models.map((model, lane) => {
      const turns = turnsOf(path, models.length === 1 ? conversation.value.lane : lane);
      return () => JSON.stringify(dialect.body({ ...asked, model }, [...turns, ...draft]));
    });
    const ask = async (): Promise<void> => {
      const headers = { "content-type": "application/json", "anthropic-version": "2023-06-01" };
      const quotes = await Promise.all(
        bodies.map(async (bodyOf): Promise<Quote> => {
          const init = { method: "POST", headers, body: bodyOf(), signal: controller.signal };
          return (await askApi(`/v1/quote?endpoint=${dialect.endpoint}`, init)).json() as Promise<Quote>;
        }),
      );
      if (!controller.signal.aborted) setQuoted({ quotes, problem: null });
    };
    const timer = setTimeout(
      () =>
        void ask().catch((error: unknown) => {
          // Without a draft nothing is about to be sent; a server that is away says so when it is.
          const isSaid = !controller.signal.aborted && draft.length > 0 && !(error instanceof TypeError);
          if (!controller.signal.aborted) setQuoted({ quotes: [], problem: isSaid ? messageOf(error) : null });
        }),
      quietMs + path.reduce((sum, step) => sum + sizeOf(step), key.length) / bytesPerMs,
    );
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [path.at(-1)?.id, key, files, asked, isWriting, canSend]);
  return quoted;
}

const sizeOf = ({ turn }: Step): number =>
  turn.role === "user"
    ? turn.pictures.reduce((sum, { base64 }) => sum + base64.length, turn.text.length)
    : turn.role === "tool"
      ? turn.output.length
      : turn.lanes.reduce((sum, answer) => sum + (answer?.text.length ?? 0), 0);
