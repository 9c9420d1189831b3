// What a request that has to wait can expect, as an estimate for people and programs.
import type { Ms } from "./types.ts";

/**
 * `position`: 0 where the request begins at once, 1 where it is next in line. `waitMs`: until a node takes it.
 * `firstTokenMs`: until its first token, including that wait.
 */
export type Forecast = Readonly<{ position: number; waitMs: Ms; firstTokenMs: Ms }>;
