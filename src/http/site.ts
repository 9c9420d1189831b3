// What another part adds to the HTTP server: its own pages and routes, and the browsers that are signed in to them.
import type { AnyElysia } from "elysia";
import type { Soon } from "../core/soon.ts";
import type { AccountId } from "../core/types.ts";

export type LiveRequests = Readonly<{
  /** Requests whose reply has not ended. */
  readonly openRequests: number;
  openRequestsOf(account: AccountId): number;
}>;

export interface Site {
  readonly routes: AnyElysia;
  /** The account that pays for a request without a key from the site's own page; else null. Throws StoreUnavailable. */
  accountOf(request: Request): Soon<AccountId | null>;
  /** Ends replies that would never end. */
  close(): void;
}
