// The request's parameters, its tools and the format of its answer.
import type { VNode } from "preact";
import { Field, LongField, NumberField } from "../../parts/field.tsx";
import { t } from "../../texts.ts";
import { change, type DialectName, type Effort, readSchema, readTools, settings } from "./conversation.ts";
import { Presets } from "./presets.tsx";
import { dialects } from "./stream.ts";
import { Button } from "../../parts/button.tsx";
import { Select } from "../../parts/select.tsx";

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

const efforts = ["off", "low", "medium", "high"] as const;

/** An empty field leaves the parameter to the server. */
const given = (value: number): number | null => (Number.isNaN(value) ? null : value);

/** `outputTokens`: the server's own budget for an answer; null: as much as there is room for; undefined: not known yet. */
export function SettingsPanel({ outputTokens }: { outputTokens: number | null | undefined }): VNode {
  const { dialect, system, stop, tools, schema } = settings.value;
  const toolsRead = readTools(tools);
  const schemaRead = readSchema(schema);
  return (
    <div class="stack">
      <Presets />
      <Field label={t("play.dialect")} hint={dialects[dialect].endpoint}>
        {(control) => (
          <Select
            {...control}
            value={dialect}
            onValue={(value) => change({ dialect: value as DialectName })}
            options={(Object.keys(dialects) as DialectName[]).map((name) => [name, t(`play.dialect_${name}`)] as const)}
          />
        )}
      </Field>
      <LongField
        label={t("play.system")}
        rows={3}
        placeholder={t("play.system_example")}
        value={system}
        onValue={(value) => change({ system: value })}
      />
      <Parameters outputTokens={outputTokens} />
      {dialect !== "responses" && (
        <LongField
          label={t("play.stop_sequences")}
          hint={t("play.stop_sequences_hint")}
          rows={2}
          value={stop}
          onValue={(value) => change({ stop: value })}
        />
      )}
      <JsonEditor
        label={t("play.tools")}
        about={t("play.tools_about")}
        value={tools}
        error={typeof toolsRead === "string" ? toolsRead : null}
        example={exampleTools}
        onChange={(value) => change({ tools: value })}
      />
      <JsonEditor
        label={t("play.schema")}
        about={t("play.schema_about")}
        value={schema}
        error={typeof schemaRead === "string" ? schemaRead : null}
        example={exampleSchema}
        onChange={(value) => change({ schema: value })}
      />
    </div>
  );
}

function Parameters({ outputTokens }: { outputTokens: number | null | undefined }): VNode {
  const { outputTokensMax, temperature, topP, effort } = settings.value;
  return (
    <div class="pair">
      <NumberField
        label={t("play.output_budget")}
        min={1}
        max={65_536}
        placeholder={outputTokens === null ? t("play.as_needed") : (outputTokens?.toString() ?? "")}
        value={outputTokensMax}
        onValue={(value) => change({ outputTokensMax: given(value) })}
      />
      <Field label={t("play.effort")}>
        {(control) => (
          <Select
            {...control}
            value={effort}
            onValue={(value) => change({ effort: value as Effort })}
            all={t("play.default")}
            options={efforts.map((each) => [each, t(`play.effort_${each}`)] as const)}
          />
        )}
      </Field>
      <NumberField
        label={t("play.temperature")}
        min={0}
        max={2}
        step={0.1}
        placeholder={t("play.default")}
        value={temperature}
        onValue={(value) => change({ temperature: given(value) })}
      />
      <NumberField
        label={t("play.top_p")}
        min={0}
        max={1}
        step={0.05}
        placeholder={t("play.default")}
        value={topP}
        onValue={(value) => change({ topP: given(value) })}
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
    <LongField
      label={label}
      hint={about}
      error={error}
      class="editor"
      spellcheck={false}
      autocapitalize="none"
      value={value}
      onValue={onChange}
    />
    <div class="row">
      {value === "" ? (
        <Button caption={t("play.insert_example")} class="link-button" onClick={() => onChange(example)} />
      ) : (
        <Button caption={t("play.clear")} class="link-button" onClick={() => onChange("")} />
      )}
    </div>
  </div>
);
