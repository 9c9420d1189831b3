// Chooses the language of the console.
import type { VNode } from "preact";
import { type Language, language, languageKey, languages } from "../language.ts";
import { post } from "../request.ts";
import { account } from "../session.ts";
import { t } from "../texts.ts";
import { Select } from "./select.tsx";

const options = Object.entries(languages).map(([code, { name }]) => [code, name] as const);

/** Loads the page anew: what stands on it was written in the old language. Mail follows. */
async function choose(language: Language): Promise<void> {
  localStorage.setItem(languageKey, language);
  if (account.value !== null) await post("/language", { language }).catch(() => {}); // this browser has it
  location.reload();
}

export const LanguageChoice = (): VNode => (
  <Select
    aria-label={t("language.language")}
    value={language}
    options={options}
    onValue={(chosen) => void choose(chosen as Language)}
  />
);
