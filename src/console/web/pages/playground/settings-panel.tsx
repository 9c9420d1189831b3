// The request's parameters, its tools and the format of its answer.
import type { VNode } from "preact";
import { Field } from "../../parts/field.tsx";
import { change, type DialectName, type Effort, readSchema, readTools, settings } from "./conversation.ts";
import { Presets } from "./presets.tsx";
import { dialects } from "./stream.ts";

const exampleTools = `[
  {
    "name": "get_weather",
    "description": "Weather of a city",
    "parameters": {
      "type": "object",
      "properties": { "city": { "type": "string" } },
      "required": ["city"]
    }
  }
]`;
const exampleSchema = `{
  "type": "object",
  "properties": {
    "answer": { "type": "string" },
    "confidence": { "type": "number" }
  },
  "required": ["answer", "confidence"],
  "additionalProperties": false
}`;

const numberOf = (text: string): number | null => (text === "" || Number.isNaN(Number(text)) ? null : Number(text));

/** `outputTokens`: what an answer may have without a budget; null: as much as there is for it; absent: not known yet. */
export function SettingsPanel({ outputTokens }: { outputTokens: number | null | undefined }): VNode {
  const { dialect, system, outputTokensMax, temperature, topP, effort, stop, tools, schema } = settings.value;
  const toolsRead = readTools(tools);
  const schemaRead = readSchema(schema);
  return (
    <div class="stack">
      <Presets />
      <Field label="Dialect" hint={dialects[dialect].endpoint}>
        {(control) => (
          <select
            {...control}
            value={dialect}
            onChange={(event) => change({ dialect: event.currentTarget.value as DialectName })}
          >
            {Object.entries(dialects).map(([name, known]) => (
              <option key={name} value={name}>
                {known.name}
              </option>
            ))}
          </select>
        )}
      </Field>
      <Field label="System prompt">
        {(control) => (
          <textarea
            {...control}
            rows={3}
            placeholder="You are a helpful assistant."
            value={system}
            onInput={(event) => change({ system: event.currentTarget.value })}
          />
        )}
      </Field>
      <div class="pair">
        <Field label="Output budget">
          {(control) => (
            <input
              {...control}
              type="number"
              min={1}
              max={65_536}
              placeholder={outputTokens === null ? "As needed" : (outputTokens?.toString() ?? "")}
              value={outputTokensMax ?? ""}
              onInput={(event) => change({ outputTokensMax: numberOf(event.currentTarget.value) })}
            />
          )}
        </Field>
        <Field label="Reasoning effort">
          {(control) => (
            <select
              {...control}
              value={effort}
              onChange={(event) => change({ effort: event.currentTarget.value as Effort })}
            >
              <option value="">Default</option>
              {(["off", "low", "medium", "high"] as const).map((name) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          )}
        </Field>
        <Field label="Temperature">
          {(control) => (
            <input
              {...control}
              type="number"
              min={0}
              max={2}
              step={0.1}
              placeholder="Default"
              value={temperature ?? ""}
              onInput={(event) => change({ temperature: numberOf(event.currentTarget.value) })}
            />
          )}
        </Field>
        <Field label="Top P">
          {(control) => (
            <input
              {...control}
              type="number"
              min={0}
              max={1}
              step={0.05}
              placeholder="Default"
              value={topP ?? ""}
              onInput={(event) => change({ topP: numberOf(event.currentTarget.value) })}
            />
          )}
        </Field>
      </div>
      {dialect !== "responses" && (
        <Field label="Stop sequences" hint="One per line; hosted models use the first four">
          {(control) => (
            <textarea
              {...control}
              rows={2}
              value={stop}
              onInput={(event) => change({ stop: event.currentTarget.value })}
            />
          )}
        </Field>
      )}
      <JsonEditor
        label="Tools"
        about="A list of functions that the model may call"
        value={tools}
        error={typeof toolsRead === "string" ? toolsRead : null}
        example={exampleTools}
        onChange={(value) => change({ tools: value })}
      />
      <JsonEditor
        label="JSON schema of the answer"
        about="The answer must match it"
        value={schema}
        error={typeof schemaRead === "string" ? schemaRead : null}
        example={exampleSchema}
        onChange={(value) => change({ schema: value })}
      />
    </div>
  );
}

type JsonEditorProps = Readonly<{
  label: string;
  about: string;
  value: string;
  error: string | null;
  example: string;
  onChange: (value: string) => void;
}>;

const JsonEditor = ({ label, about, value, error, example, onChange }: JsonEditorProps): VNode => (
  <div class="field">
    <Field label={label} hint={about} error={error}>
      {(control) => (
        <textarea
          {...control}
          class="editor"
          spellcheck={false}
          autocapitalize="none"
          value={value}
          onInput={(event) => onChange(event.currentTarget.value)}
        />
      )}
    </Field>
    <div class="row">
      {value === "" ? (
        <button type="button" class="link-button" onClick={() => onChange(example)}>
          Insert an example
        </button>
      ) : (
        <button type="button" class="link-button" onClick={() => onChange("")}>
          Clear
        </button>
      )}
    </div>
  </div>
);
