// Named settings that this browser keeps: chosen, saved and deleted here.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { Field } from "../../parts/field.tsx";
import { type IconName } from "../../parts/icons.tsx";
import { NameDialog } from "../../parts/name-dialog.tsx";
import { toast } from "../../parts/toasts.tsx";
import { messageOf } from "../../request.ts";
import { change, defaultSettings, type Settings, settings } from "./conversation.ts";
import type { Preset } from "./conversation-store.ts";
import { applyPreset, deletePreset, keeping, presets, savePreset } from "./kept.ts";
import { IconButton } from "../../parts/button.tsx";

const nameMaxLength = 60;

const names = Object.keys(defaultSettings) as (keyof Settings)[];
const areSame = (a: Settings, b: Settings): boolean => names.every((name) => a[name] === b[name]);

export function Presets(): VNode | null {
  const [saving, setSaving] = useState(false);
  if (keeping.value === "nowhere") return null;
  const chosen = presets.value.find((preset) => areSame(preset.settings, settings.value));
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
              <ToolButton icon="save" label="Save as a preset" onClick={() => setSaving(true)} />
            ) : (
              <ToolButton icon="trash" label={`Delete the preset ${chosen.name}`} onClick={() => void remove(chosen)} />
            )}
          </div>
        )}
      </Field>
      {saving && (
        <NameDialog
          title="Save as a preset"
          hint="Keeps the model and all settings below, in this browser"
          maxLength={nameMaxLength}
          caption="Save"
          onName={savePreset}
          onClose={() => setSaving(false)}
        />
      )}
    </>
  );
}

const remove = ({ id, name }: Preset): Promise<void> =>
  deletePreset(id).then(
    () => toast(`The preset ${name} is deleted.`),
    (error: unknown) => toast(messageOf(error), "failed"),
  );

type ToolButtonProps = Readonly<{ icon: IconName; label: string; onClick: () => void }>;

const ToolButton = (button: ToolButtonProps): VNode => <IconButton {...button} title={button.label} />;
