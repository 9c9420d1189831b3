// Any answer at all, for property tests: text and thoughts cut between any two UTF-16 units, calls whose fragments
// interleave, calls that the gateway runs by itself, citations, signs of life.
import fc from "fast-check";
import type { AnswerEnd } from "../../src/dialects/dialect.ts";
import type { Piece, Source } from "../../src/core/types.ts";
import { call, cites, fragments, outcome, reasoning, refusal, search, serverCall, text } from "./pieces.ts";
import type { Step } from "./player.ts";

/** Tools of a request, and names under which a model may call them, or none. */
export const offeredTools = [
  { type: "function", name: "bash", parameters: { type: "object" } },
  { type: "custom", name: "apply_patch" },
  {
    type: "namespace",
    name: "n",
    tools: [
      { type: "function", name: "f" },
      { type: "custom", name: "c" },
    ],
  },
];
const calledNames = ["bash", "apply_patch", "n__f", "n__c", "made_up"];

const words = fc.string({ unit: "grapheme", minLength: 1, maxLength: 8 });
const source: fc.Arbitrary<Source> = fc.record({ title: words, url: fc.webUrl(), text: words });
const cuts = fc.array(fc.nat(), { maxLength: 3 });

/** The text in pieces; they are never empty, as those of nodes are not. */
function cutAt(whole: string, places: readonly number[]): string[] {
  const at = [...new Set(places.map((place) => place % whole.length))].filter((place) => place > 0);
  at.sort((a, b) => a - b);
  return [...at, whole.length].map((end, index) => whole.slice(at[index - 1] ?? 0, end));
}

/** Steps that follow each other directly; of a citation the positions are not known yet. */
type Unit = readonly Step[];

const spoken = fc.tuple(fc.constantFrom(text, text, reasoning, refusal), words, cuts);
const saying: fc.Arbitrary<Unit[]> = spoken.map(([kind, said, places]) =>
  kind(...cutAt(said, places)).map((piece) => [piece]),
);
const citing: fc.Arbitrary<Unit[]> = fc
  .tuple(words, source, fc.integer({ min: 1, max: 9 }))
  .map(([said, cited, number]) => [[...text(`${said}[${number}]`), cites(cited, 0, 0)]]);
const result: fc.Arbitrary<Piece> = fc
  .record({ text: words, failed: fc.boolean(), sources: fc.array(source, { maxLength: 2 }) })
  .map(outcome);
const owning: fc.Arbitrary<Unit[]> = fc
  .tuple(fc.boolean(), words, fc.boolean(), result)
  .map(([isSearch, given, waits, came]) => [
    [
      isSearch ? search(given) : serverCall({ server: "files", name: "read" }, { path: given }),
      ...(waits ? [{ kind: "silence" } as const] : []),
      came,
    ],
  ]);
const silence: fc.Arbitrary<Unit[]> = fc.constant([[{ kind: "silence" }]]);

const calling: fc.Arbitrary<Readonly<{ name: string; parts: string[] }>> = fc
  .tuple(fc.constantFrom(...calledNames), fc.dictionary(words, fc.jsonValue({ maxDepth: 1 }), { maxKeys: 3 }), cuts)
  .map(([name, given, places]) => ({ name, parts: cutAt(JSON.stringify(given), places) }));

/** Steps of a whole answer: a call's arguments are complete, what was begun has its result. */
export const wholeAnswers: fc.Arbitrary<readonly Step[]> = fc
  .tuple(
    fc.array(fc.oneof(saying, saying, citing, owning, silence), { maxLength: 8 }),
    fc.array(calling, { maxLength: 4 }),
    fc.infiniteStream(fc.nat()),
  )
  .map(([loose, calls, chance]) => placed(interleaved(loose.flat(), calls, () => chance.next().value as number)));

/** Calls begin in the order of their index; from then on any lane may go on. */
function interleaved(
  loose: readonly Unit[],
  calls: readonly Readonly<{ name: string; parts: string[] }>[],
  chance: () => number,
): Step[] {
  const lanes: Unit[][] = calls.map(({ parts }, index) => parts.map((part) => fragments(index, part)));
  lanes.push([...loose]);
  const steps: Step[] = [];
  for (let begun = 0; begun < calls.length || lanes.some((lane) => lane.length > 0);) {
    const lane = chance() % lanes.length;
    if (lane === lanes.length - 1 || lane < begun) steps.push(...(lanes[lane]!.shift() ?? []));
    else steps.push(call(begun, `call_${begun}`, calls[begun++]!.name));
  }
  return steps;
}

/** Citations stand around the mark with which the text before them ends. */
function placed(steps: readonly Step[]): Step[] {
  let said = "";
  return steps.map((step) => {
    if (step.kind === "text") said += JSON.parse(step.literal) as string;
    return step.kind === "citation" ? cites(step.source, said.lastIndexOf("["), said.length) : step;
  });
}

export const ends: fc.Arbitrary<AnswerEnd> = fc
  .constantFrom("stop", "tool_calls", "length", "content_filter")
  .map((reason) => ({
    reason,
    stopSequence: null,
    usage: { inputFresh: 100, inputCached: 20, output: 30, reasoning: 5 },
  }));
