// The choice of the console's language.
import type { VNode } from "preact";
import { type Language, language, languages } from "../language.ts";
import { keepLanguage } from "../session.ts";
import { t } from "../texts.ts";
import { Select } from "./select.tsx";

const options = Object.entries(languages).map(([code, { name }]) => [code, name] as const);

export const LanguageChoice = (): VNode => (
  <Select
    aria-label={t("language.language")}
    value={language}
    options={options}
    onValue={(chosen) => keepLanguage(chosen as Language, true)}
  />
);
