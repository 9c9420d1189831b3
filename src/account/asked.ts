// What admission reads of a request: a whole Ask may hold a conversation of megabytes.
import type { Ask } from "../core/types.ts";

export type Asked = Pick<Ask, "endpoint" | "coderBilling" | "model" | "outputTokensMax" | "openBudget">;
