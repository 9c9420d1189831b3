// What another part adds to the HTTP server: its own pages and routes, and the browsers that are signed in to them.
import type { AnyElysia } from "elysia";
import type { Soon } from "../core/soon.ts";
import type { AccountId } from "../core/types.ts";

/** The server's current requests. */
export type LiveRequests = Readonly<{
  /** Requests whose reply has not ended. */
  readonly openRequests: number;
  openRequestsOf(account: AccountId): number;
}>;

export interface Site {
  readonly routes: AnyElysia;
  /**
   * The account that pays for a request without a key, if it comes from a page of the site with a signed-in user;
   * otherwise null. Throws StoreUnavailable.
   */
  accountOf(request: Request): Soon<AccountId | null>;
  /** Ends replies that would never end. */
  close(): void;
}
