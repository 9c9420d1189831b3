// The console's files inside the single binary, where `src/build.ts` replaces this module; from source, there are none.
import type { EmbeddedFile } from "./bundle.ts";

export const embedded: readonly EmbeddedFile[] | null = null;
