// The language of the console: what was chosen in this browser, or the first of the browser's that we speak.

/** By its code in BCP 47: its own name, and how `Intl` writes its numbers and dates. */
export const languages = {
  en: { name: "English", numbers: "en-US", dates: "en-GB" },
  de: { name: "Deutsch", numbers: "de-DE", dates: "de-DE" },
  zh: { name: "简体中文", numbers: "zh-CN", dates: "zh-CN" },
} as const;
export type Language = keyof typeof languages;

export const languageKey = "tollgate-language";

const spoken = (tag: string): Language | undefined => {
  const code = tag.split("-", 1)[0]!.toLowerCase();
  return Object.hasOwn(languages, code) ? (code as Language) : undefined;
};

/** Outside a browser, English. */
export const language: Language =
  typeof localStorage === "undefined"
    ? "en"
    : ([localStorage.getItem(languageKey) ?? "", ...navigator.languages]
        .map(spoken)
        .find((found) => found !== undefined) ?? "en");
