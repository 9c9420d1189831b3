// Actions on a conversation: ask, stop, ask again, edit a question and continue from there, give a tool's result.
import { effect } from "@preact/signals";
import { now } from "../../clock.ts";
import { get } from "../../request.ts";
import { type Answer, change, modelsOf, newAnswer, type Picture, revision, settings } from "./conversation.ts";
import { answering, conversation, keep, keeping, keepWhileWritten, noteOwn, show, update, written } from "./kept.ts";
import { owner } from "./owner.ts";
import { receive } from "./stream.ts";
import {
  type Conversation,
  leafBelow,
  newConversation,
  newStep,
  openCalls,
  type OpenCall,
  pathOf,
  pathTo,
  type Replies,
  type Step,
  turnsOf,
  withStep,
} from "./tree.ts";

/** The charge is recorded before an answer ends, and soon after an answer is stopped. */
const costTries = 4;
const costEveryMs = 500;

const running = new Map<string, AbortController>();

/** After another account signs in, no answer of the previous one goes on at its cost. */
let askedBy: string | null = null;
effect(() => {
  if (askedBy !== owner.value) for (const controller of running.values()) controller.abort();
  askedBy = owner.value;
});

/** Stops the answers of the shown conversation; what came so far stays and is billed. */
export function stop(): void {
  for (const [id, of] of written.value) if (of === conversation.value.id) running.get(id)?.abort();
}

/** An answer that is being written continues, and is kept in its own conversation. */
export function startNew(): void {
  if (keeping.value === "nowhere") stop();
  show(newConversation());
}

export function send(text: string, pictures: readonly Picture[]): void {
  append({ role: "user", text, pictures }, conversation.value.leaf);
  answer(conversation.value.leaf, modelsOf(settings.value));
}

function append(turn: Step["turn"], parent: string | null): Step {
  const step = newStep(parent, turn);
  show(withStep(conversation.value, step));
  void keep(owner.value, conversation.value, [step], settings.value);
  return step;
}

/** The model continues when the last open call has its result. */
export function giveResult({ lane, call }: OpenCall, output: string): void {
  const open = openCalls(pathOf(conversation.value));
  const path = pathOf(conversation.value);
  const replies = path.findLast(({ turn }) => turn.role === "replies")?.turn as Replies | undefined;
  append({ role: "tool", callId: call.id, name: call.name, output, lane }, conversation.value.leaf);
  if (open.length > 1 || replies === undefined) return;
  // Of several models, only those that made calls are asked again.
  const models = replies.lanes.map((each) => ((each?.calls.length ?? 0) > 0 ? (each?.model ?? null) : null));
  answer(conversation.value.leaf, models.length === 1 ? [settings.value.model] : models);
}

/** Gets a new version of the answer; of models side by side, the others' answers stay. */
export function askAgain(step: Step, lane: number): void {
  if (step.turn.role !== "replies" || answering.value) return;
  const { lanes } = step.turn;
  if (lanes.length === 1) return answer(step.parent, [settings.value.model]);
  const chosen = modelsOf(settings.value);
  const models = lanes.map((each, index) => (index === lane ? chosen[index] || (each?.model ?? "") : null));
  answer(step.parent, models, lanes);
}

/** Sends an edited question; the old one stays as a version with everything that followed it. */
export function askInstead(step: Step, text: string): void {
  if (step.turn.role !== "user" || answering.value) return;
  append({ ...step.turn, text }, step.parent);
  answer(conversation.value.leaf, modelsOf(settings.value));
}

/** Shows another version, up to its last message. */
export function choose(step: Step): void {
  show({ ...conversation.value, leaf: leafBelow(conversation.value, step.id) });
  void keep(owner.value, conversation.value, [], settings.value);
}

/** Continues with one of several models alone. */
export function goOnWith({ model }: Answer, lane: number): void {
  change({ model, others: "" });
  show({ ...conversation.value, lane });
  void keep(owner.value, conversation.value, [], settings.value);
}

/** Asks the models of these lanes; a null keeps the previous answer of its lane. */
function answer(parent: string | null, models: readonly (string | null)[], before: Replies["lanes"] = []): void {
  const of = owner.value;
  const asked = settings.value;
  const lanes = models.map((model, lane) => (model === null ? (before[lane] ?? null) : newAnswer(model, now())));
  const step = newStep(parent, { role: "replies", lanes });
  show(withStep(conversation.value, step));
  const started = conversation.value;
  const path = pathTo(started, parent);
  const controller = new AbortController();
  running.set(step.id, controller);
  written.value = new Map(written.value).set(step.id, started.id);
  noteOwn(step);

  const keepNow = (): void => {
    // A deleted conversation needs no more of its answer.
    void keep(of, shownOr(started), [step], asked).then((isThere) => isThere || controller.abort());
  };
  const keeper = keepWhileWritten(keepNow);
  keepNow();
  const onChange = (): void => {
    revision.value++;
    keeper.due(lanes.reduce((sum, each) => sum + (each?.text.length ?? 0), 0));
  };
  const answers = lanes.map((each, lane) => {
    const model = models[lane];
    if (each === null || model == null) return null;
    const turns = turnsOf(path, models.length === 1 ? started.lane : lane);
    return receive(each, { ...asked, model }, turns, controller.signal, onChange).then(() => {
      revision.value++;
      if (each.state !== "failed") void addCost(each, of).then(() => replace(step));
    });
  });
  void Promise.all(answers).then(() => {
    keeper.end();
    running.delete(step.id);
    written.value = new Map([...written.value].filter(([id]) => id !== step.id));
    revision.value++;
    replace(step);
  });

  function replace(done: Step): void {
    const next = { ...done };
    noteOwn(next);
    update(started.id, (shown) => ({ ...shown, steps: new Map(shown.steps).set(next.id, next) }));
    void keep(of, shownOr(started), [next], asked);
  }
}

const shownOr = (started: Conversation): Conversation =>
  conversation.value.id === started.id ? conversation.value : started;

/** Adds the charge of the request, as the usage page has it. */
async function addCost(answer: Answer, of: string | null): Promise<void> {
  const { requestId } = answer;
  if (requestId === null) return;
  for (let left = costTries; left > 0 && of === owner.value; left--) {
    const page = await get("/usage", { text: requestId, limit: 1 }).catch(() => null);
    if (page === null) return;
    const row = page.rows.find(({ request_id }) => request_id === requestId);
    if (row !== undefined) {
      answer.costUsd = row.cost_usd;
      answer.usage ??= { input: row.input, output: row.output, cached: row.cached_input, reasoning: row.reasoning };
      return;
    }
    if (left > 1) await new Promise((resolve) => setTimeout(resolve, costEveryMs));
  }
}
