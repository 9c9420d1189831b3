// What a shop's row of [[models]] does to requests, whatever their dialect: fields that it sets, gives a default or
// removes, and instructions in front. Fields are named as in chat completions, because engines name them so.
import type { EngineField } from "../../core/engine-fields.ts";
import { isRecord } from "../../core/is-record.ts";
import { isRefusal } from "../../core/refusals.ts";
import type { Ask, Preset, PresetFields, Refusal, Sampling, VoiceFields } from "../../core/types.ts";
import { type FieldReader, noOthers, readableEngineFields, readEngineFields } from "./engine-fields.ts";
import { malformed } from "./field.ts";
import { samplingNames } from "./sampling.ts";
import { efforts } from "./settings.ts";

/** Of models that hear or speak, whose fields are texts and numbers. */
const voiceNames = ["voice", "speed", "response_format", "instructions", "language", "prompt"];
/** Names that a preset can have. */
export const presetNames: ReadonlySet<string> = new Set([
  ...["reasoning_effort", "stop"],
  ...samplingNames,
  ...readableEngineFields,
  ...voiceNames,
]);
const switches = ["enable_thinking", "thinking"];
const anyModel: FieldReader = { id: "", tier: "own", readsDepth: true, structuredOutput: "none" };

/** A refusal's reason begins with the wrong field's name. */
export function readPresetFields(written: Readonly<Record<string, unknown>>): PresetFields | Refusal {
  const unknown = Object.keys(written).find((name) => !presetNames.has(name));
  if (unknown !== undefined) return malformed(`${unknown} is not a field that a preset can have`);
  const isVoice = ([name, value]: [string, unknown]) =>
    voiceNames.includes(name) && (typeof value === "string" || typeof value === "number");
  const voice = Object.fromEntries(Object.entries(written).filter(isVoice)) as VoiceFields;
  const others = Object.entries(written).filter(([name]) => !Object.hasOwn(voice, name));
  const { stop = [], reasoning_effort: depth = null, ...rest } = Object.fromEntries(others);
  const read = readEngineFields(rest, anyModel, noOthers, true);
  if (isRefusal(read)) return read;
  const sequences: unknown[] = Array.isArray(stop) ? stop : [stop];
  const texts = sequences.filter((sequence) => typeof sequence === "string");
  if (texts.length < sequences.length) return malformed("stop must be a string or a list of strings");
  if (depth !== null && !(typeof depth === "string" && Object.hasOwn(efforts, depth))) {
    return malformed(`reasoning_effort must be one of ${Object.keys(efforts).join(", ")}`);
  }
  const effort = depth === null ? read.effort : efforts[depth]!;
  return { sampling: read.sampling, effort, stop: texts, engineFields: read.fields, voice };
}

/** The client's fields for a model that hears or speaks, as the model's preset has them. */
export function voiceFields(preset: Preset | undefined, given: Readonly<Record<string, unknown>>) {
  const ofShop = (fields: PresetFields | undefined) => ({
    ...(fields?.sampling.temperature === undefined ? {} : { temperature: fields.sampling.temperature }),
    ...fields?.voice,
  });
  const left = Object.entries(given).filter(([name, value]) => value != null && !preset?.remove.includes(name));
  return { ...ofShop(preset?.default), ...Object.fromEntries(left), ...ofShop(preset?.set) } as Record<string, unknown>;
}

type PresetAsk = Pick<Ask, "model" | "turns" | "sampling" | "effort" | "stop" | "engineFields">;

/** The request as its model's preset has it. */
export function withPreset<OwnAsk extends PresetAsk>(ask: OwnAsk): OwnAsk {
  const { preset } = ask.model;
  if (preset === undefined) return ask;
  const { set, default: otherwise, remove, system } = preset;
  const left = without(ask, new Set(remove));
  const engineFields = merged(otherwise, left, set);
  const { engineFields: _, ...rest } = ask;
  return {
    ...(rest as OwnAsk),
    turns: system === "" ? ask.turns : [{ role: "system", content: system }, ...ask.turns],
    sampling: { ...otherwise.sampling, ...left.sampling, ...set.sampling },
    effort: set.effort ?? left.effort ?? (switchesThoughts(left) ? null : otherwise.effort),
    stop: [set.stop, left.stop, otherwise.stop].find((stop) => stop.length > 0) ?? [],
    ...(engineFields.length > 0 && { engineFields }),
  };
}

function without({ sampling, effort, stop, engineFields = [] }: PresetAsk, removed: ReadonlySet<string>): PresetFields {
  const isKept = ({ name, at }: EngineField): boolean => !removed.has(name) && !removed.has(at);
  return {
    sampling: Object.fromEntries(Object.entries(sampling).filter(([name]) => !removed.has(name))) as Sampling,
    effort: removed.has("reasoning_effort") ? null : effort,
    stop: removed.has("stop") ? [] : stop,
    engineFields: engineFields.filter(isKept),
  };
}

/** Later ones win. Settings of a chat template are merged, without the client's switch where the shop sets the depth. */
function merged(...given: readonly [PresetFields, PresetFields, PresetFields]): readonly EngineField[] {
  const [otherwise, left, set] = given;
  const fields = new Map<string, EngineField>();
  for (const each of given) {
    for (const field of each.engineFields) {
      const before = fields.get(field.name)?.value;
      if (field.name !== "chat_template_kwargs") fields.set(field.name, field);
      else {
        const quiet = (each === left && set.effort !== null) || (each === otherwise && left.effort !== null);
        const settings = quiet ? unswitched(field.value) : (field.value as object);
        fields.set(field.name, { ...field, value: { ...(before as object | undefined), ...settings } });
      }
    }
  }
  return [...fields.values()].filter(({ name, value }) => name !== "chat_template_kwargs" || !isEmpty(value));
}

const unswitched = (settings: unknown): object =>
  Object.fromEntries(Object.entries(settings as object).filter(([name]) => !switches.includes(name)));

const isEmpty = (settings: unknown): boolean => Object.keys(settings as object).length === 0;

/** Whether the fields turn thoughts on or off by a switch of the chat template. */
const switchesThoughts = ({ engineFields }: PresetFields): boolean =>
  engineFields.some(
    ({ name, value }) => name === "chat_template_kwargs" && isRecord(value) && switches.some((each) => each in value),
  );
