// What another part adds to the HTTP server: its own pages and routes, and browsers that are signed in to them.
import type { AnyElysia } from "elysia";
import type { Soon } from "../core/soon.ts";
import type { AccountId } from "../core/types.ts";

/** What the server does at the moment. */
export type LiveRequests = Readonly<{
  /** Requests whose reply has not ended. */
  readonly openRequests: number;
  openRequestsOf(account: AccountId): number;
}>;

export interface Site {
  readonly routes: AnyElysia;
  /**
   * The account that a request without a key spends from, where it comes from a page of the site on which somebody is
   * signed in; else null. Throws StoreUnavailable.
   */
  accountOf(request: Request): Soon<AccountId | null>;
  /** Ends replies that would go on forever. */
  close(): void;
}
