// The console's files inside the single binary: `src/build.ts` puts its bundle in place of this module. From source
// there is nothing embedded, and the console is bundled when its first page is asked for.
import type { EmbeddedFile } from "./bundle.ts";

export const embedded: readonly EmbeddedFile[] | null = null;
