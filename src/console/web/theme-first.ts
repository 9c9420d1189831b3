// Sets the theme before the first paint. A classic script: modules wait for parsing, and the policy forbids inline
// ones.
import { applyTheme, storedTheme } from "./theme.ts";

applyTheme(storedTheme());
