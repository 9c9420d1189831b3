// The theme (light, dark or the system's), kept in this browser.

export const themes = ["system", "light", "dark"] as const;
export type Theme = (typeof themes)[number];

const key = "tollgate-theme";

export function storedTheme(): Theme {
  const stored = localStorage.getItem(key);
  return themes.find((theme) => theme === stored) ?? "system";
}

export function applyTheme(theme: Theme): void {
  if (theme === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme;
}

export function chooseTheme(theme: Theme): void {
  if (theme === "system") localStorage.removeItem(key);
  else localStorage.setItem(key, theme);
  applyTheme(theme);
}
