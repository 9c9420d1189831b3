// Chooses light, dark or the system's theme, with three small toggle buttons.
import { signal } from "@preact/signals";
import type { VNode } from "preact";
import { chooseTheme, storedTheme, type Theme, themes } from "../theme.ts";
import { Icon, type IconName } from "./icons.tsx";
import { t, type TextKey } from "../texts.ts";

const chosen = signal(storedTheme());

export function setTheme(theme: Theme): void {
  chooseTheme(theme);
  chosen.value = theme;
}

const icons: Readonly<Record<Theme, IconName>> = { system: "system", light: "sun", dark: "moon" };
const names: Readonly<Record<Theme, TextKey>> = { system: "theme.system", light: "theme.light", dark: "theme.dark" };

export const ThemeChoice = ({ labeled = false }: { labeled?: boolean }): VNode => (
  <div class="segments" role="group" aria-label={t("theme.theme")}>
    {themes.map((theme) => (
      <button
        key={theme}
        type="button"
        aria-pressed={chosen.value === theme}
        aria-label={t(names[theme])}
        title={t(names[theme])}
        onClick={() => setTheme(theme)}
      >
        <Icon name={icons[theme]} size={15} />
        {labeled && <span>{t(names[theme])}</span>}
      </button>
    ))}
  </div>
);
