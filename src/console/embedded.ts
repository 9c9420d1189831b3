// The console's files inside the single binary, where `src/build.ts` replaces this module by its bundle. From source,
// nothing is embedded, and the console is bundled when its first page is requested.
import type { EmbeddedFile } from "./bundle.ts";

export const embedded: readonly EmbeddedFile[] | null = null;
