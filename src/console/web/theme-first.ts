// Sets the theme before the first paint, so that the other one does not flash. A classic script in the page's head,
// because modules wait until the page is parsed; not inline, because the content security policy forbids that.
import { applyTheme, storedTheme } from "./theme.ts";

applyTheme(storedTheme());
