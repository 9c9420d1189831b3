// Chooses the language of the console.
import type { VNode } from "preact";
import { language, languageKey, languages } from "../language.ts";
import { t } from "../texts.ts";
import { Select } from "./select.tsx";

const options = Object.entries(languages).map(([code, { name }]) => [code, name] as const);

/** Loads the page anew: what stands on it was written in the old language. */
function choose(language: string): void {
  localStorage.setItem(languageKey, language);
  location.reload();
}

export const LanguageChoice = (): VNode => (
  <Select aria-label={t("language.language")} value={language} options={options} onValue={choose} />
);
