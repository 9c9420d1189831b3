// What answers show and no request says: how much a model's engine puts around a prompt (chat template, system prompt,
// a format in words), how dense the texts are, and how long answers are that no budget ends. Each thread that serves
// clients keeps this for its own requests.
//
// Expectations decide which requests begin together, so they should be too high rather than too low. The template is at
// most what the shortest prompt was reported to have, and at least what a report exceeded the text of its request by.
// Unusual values are forgotten as other answers come. Images may have any number of tokens, which says nothing about
// other requests, so requests with images are ignored here.
import { answersOf } from "../core/answer-budget.ts";
import { hasImages } from "../core/images.ts";
import { hasInputs, mostTokens } from "../core/inputs.ts";
import type { Ask, Expected, Usage } from "../core/types.ts";

/** What an engine puts around a prompt, until an answer has shown it: the longest templates with their system prompts. */
export const templateTokensUnknown = 4_096;
/** Longer texts are expected to be as dense as earlier ones, but at least as dense as code and digits. */
const longTextBytes = 2_048;
const longTextTokensPerByteMin = 0.5;
/** An unusual answer is nearly forgotten after a few times as many answers. */
export const answersRemembered = 64;

type Habits = Readonly<{
  shortestPrompt: number;
  /** Tokens per byte of long texts; 1 until one was read. */
  density: number;
  readsLong: boolean;
  beyondText: number;
  answer: number;
}>;

export class ModelHabits {
  /** By dialect and model, because plain completions have no template. */
  readonly #known = new Map<string, Habits>();

  /** `textTokens`: the most that its own text may have. */
  expected(ask: Ask, textTokens: number): Expected {
    if (hasInputs(ask)) return { input: mostTokens(ask), output: 0 };
    if (ask.voice !== undefined) return { input: textTokens, output: 0 };
    const { shortestPrompt, density, beyondText, answer } = this.#known.get(keyOf(ask)) ?? nothing;
    const template = Math.max(Math.min(shortestPrompt, templateTokensUnknown), beyondText);
    const prompts = ask.answers?.prompts ?? 1;
    const { contextTokens } = ask.model;
    // An unread file may have any length, and no bytes that show its density. Many prompts are each short.
    const text = textTokens >= contextTokens || prompts > 1 ? textTokens : inText(textTokens, density);
    const input = Math.min(Math.ceil(template * prompts + text), contextTokens * prompts);
    return { input, output: Math.ceil(answer * answersOf(ask)) };
  }

  /** One generation was reported or counted to have this usage. */
  saw(ask: Ask, textTokens: number, { inputFresh, inputCached, output }: Usage): void {
    const prompt = inputFresh + inputCached;
    if (prompt === 0 || hasInputs(ask) || ask.voice !== undefined) return;
    const before = this.#known.get(keyOf(ask)) ?? nothing;
    const shortestPrompt = Math.min(before.shortestPrompt, prompt);
    const answer = mostOf(before.answer, output);
    if (hasImages(ask)) return void this.#known.set(keyOf(ask), { ...before, shortestPrompt, answer });
    const isLong = textTokens >= longTextBytes;
    const density = isLong ? densityAfter(before, prompt / textTokens) : before.density;
    this.#known.set(keyOf(ask), {
      shortestPrompt,
      density,
      readsLong: before.readsLong || isLong,
      beyondText: mostOf(before.beyondText, prompt - inText(textTokens, density)),
      answer,
    });
  }
}

const nothing: Habits = { shortestPrompt: Infinity, density: 1, readsLong: false, beyondText: 0, answer: 0 };

const keyOf = ({ endpoint, model }: Ask): string => `${endpoint} ${model.id}`;

/** A short text may have any density. */
const inText = (textTokens: number, density: number): number =>
  textTokens < longTextBytes ? textTokens : Math.max(longTextBytes, textTokens * density);

const densityAfter = ({ density, readsLong }: Habits, seen: number): number =>
  Math.min(1, Math.max(longTextTokensPerByteMin, readsLong ? mostOf(density, seen) : seen));

const mostOf = (before: number, seen: number): number => Math.max(seen, before - before / answersRemembered);
