// Runs before the first paint: a theme that the user chose must not flash in after the other one. A classic script in
// the page's head, because modules wait until the page is parsed; nothing inline, because the policy forbids it.
import { applyTheme, storedTheme } from "./theme.ts";

applyTheme(storedTheme());
