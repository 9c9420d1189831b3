// Named settings that this browser keeps: chosen, saved and deleted here.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { Field } from "../../parts/field.tsx";
import { type IconName } from "../../parts/icons.tsx";
import { NameDialog } from "../../parts/name-dialog.tsx";
import { toast } from "../../parts/toasts.tsx";
import { messageOf } from "../../request.ts";
import { t } from "../../texts.ts";
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
      <Field label={t("play.preset")}>
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
                {areSame(settings.value, { ...defaultSettings, model: settings.value.model })
                  ? t("play.preset_none")
                  : t("play.preset_own")}
              </option>
              {presets.value.map(({ id, name }) => (
                <option key={id} value={id}>
                  {name}
                </option>
              ))}
            </select>
            {chosen === undefined ? (
              <ToolButton icon="save" label={t("play.preset_save")} onClick={() => setSaving(true)} />
            ) : (
              <ToolButton
                icon="trash"
                label={t("play.preset_delete", { name: chosen.name })}
                onClick={() => void remove(chosen)}
              />
            )}
          </div>
        )}
      </Field>
      {saving && (
        <NameDialog
          title={t("play.preset_save")}
          hint={t("play.preset_hint")}
          maxLength={nameMaxLength}
          caption={t("play.save")}
          onName={savePreset}
          onClose={() => setSaving(false)}
        />
      )}
    </>
  );
}

const remove = ({ id, name }: Preset): Promise<void> =>
  deletePreset(id).then(
    () => toast(t("play.preset_deleted", { name })),
    (error: unknown) => toast(messageOf(error), "failed"),
  );

type ToolButtonProps = Readonly<{ icon: IconName; label: string; onClick: () => void }>;

const ToolButton = (button: ToolButtonProps): VNode => <IconButton {...button} title={button.label} />;
