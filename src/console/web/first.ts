// Sets the theme and the language before the first paint, and asks for the texts while the app still loads. A classic
// script: modules wait for parsing, and the policy forbids inline ones.
import { language } from "./language.ts";
import { requestTexts } from "./text-files.ts";
import { applyTheme, storedTheme } from "./theme.ts";

applyTheme(storedTheme());
document.documentElement.lang = language;
// The app asks again, and says so if that fails, too.
requestTexts("first").catch(() => {});
if (location.pathname !== "/") requestTexts("people").catch(() => {});
if (location.pathname.startsWith("/operator")) requestTexts("operators").catch(() => {});
