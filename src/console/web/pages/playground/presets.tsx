// Settings under a name, kept in this browser: chosen, saved and deleted.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { Field } from "../../parts/field.tsx";
import { Icon } from "../../parts/icons.tsx";
import { NameDialog } from "../../parts/name-dialog.tsx";
import { toast } from "../../parts/toasts.tsx";
import { messageOf } from "../../request.ts";
import { change, defaultSettings, type Settings, settings } from "./conversation.ts";
import { applyPreset, deletePreset, keeping, presets, savePreset } from "./kept.ts";

const nameMaxLength = 60;

const names = Object.keys(defaultSettings) as (keyof Settings)[];
const areSame = (a: Settings, b: Settings): boolean => names.every((name) => a[name] === b[name]);

export function Presets(): VNode | null {
  const [saving, setSaving] = useState(false);
  if (keeping.value === "nowhere") return null;
  const chosen = presets.value.find((preset) => areSame(preset.settings, settings.value));
  const remove = (): void => {
    if (chosen === undefined) return;
    void deletePreset(chosen.id).then(
      () => toast(`The preset ${chosen.name} is deleted.`),
      (error: unknown) => toast(messageOf(error), "failed"),
    );
  };
  return (
    <>
      <Field label="Preset">
        {(control) => (
          <div class="preset">
            <select
              {...control}
              value={chosen?.id ?? ""}
              onChange={({ currentTarget }) => {
                const preset = presets.value.find(({ id }) => id === currentTarget.value);
                if (preset !== undefined) applyPreset(preset);
                else change({ ...defaultSettings, model: settings.value.model });
              }}
            >
              <option value="">
                {areSame(settings.value, { ...defaultSettings, model: settings.value.model }) ? "None" : "Own settings"}
              </option>
              {presets.value.map(({ id, name }) => (
                <option key={id} value={id}>
                  {name}
                </option>
              ))}
            </select>
            {chosen === undefined ? (
              <button
                type="button"
                class="icon-button"
                aria-label="Save as a preset"
                title="Save as a preset"
                onClick={() => setSaving(true)}
              >
                <Icon name="save" />
              </button>
            ) : (
              <button
                type="button"
                class="icon-button"
                aria-label={`Delete the preset ${chosen.name}`}
                title="Delete the preset"
                onClick={remove}
              >
                <Icon name="trash" />
              </button>
            )}
          </div>
        )}
      </Field>
      {saving && (
        <NameDialog
          title="Save as a preset"
          hint="The model and everything below is kept under it, in this browser"
          maxLength={nameMaxLength}
          caption="Save"
          onName={savePreset}
          onClose={() => setSaving(false)}
        />
      )}
    </>
  );
}
