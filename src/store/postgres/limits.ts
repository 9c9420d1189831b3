// How long a gateway waits for PostgreSQL, and how long others wait for a gateway; the unit comes last in the name.
import { assert } from "../../core/assert.ts";
import { journalGiveUpMs } from "../limits.ts";

export const connectTimeoutMs = 2_000;
/** For a gateway's console, its commands and what is done now and then. */
export const sideConnectionsMax = 4;
/** For stored responses: one writes while others look something up. */
export const responsesConnectionsMax = 2;
/** All of a gateway's: its lane, its reader of keys, its shares of nodes and its watch for dead gateways have one each. */
export const gatewayConnectionsMax = 4 + sideConnectionsMax + responsesConnectionsMax;
/** A slower call is given up with its connection; its outcome is found out on the next one. */
export const callTimeoutMs = 5_000;
/** A transaction waits this long for the locks of others. Shorter than a call may take, so that the server says so. */
export const lockTimeoutMs = 4_000;
/** A batch, which has everybody's requests, waits this long; then it goes on without the accounts that are locked. */
export const batchLockMs = 500;
/** While one is: another would cost everybody the same again. */
export const batchLockQuickMs = 50;
/** A start that extends the tables waits this long for a lock, and everybody else behind it; then it lets them go on first. */
export const migrationLockMs = 200;
export const migrationPauseMs = 1_000;
export const migrationGiveUpMs = 30_000;
/** Where batches take long, it waits for as many of the usual ones. */
export const batchLockTries = 4;
/** How often is looked whether a locked account is free. */
export const lockedLookMs = 100;
/** Until one is tried again whose row is free, but not what it needs beside that. */
export const lockedPauseFirstMs = 100;
export const lockedPauseMostMs = 2_000;
/** Locked accounts that are named to operators. */
export const lockedToldMax = 20;
/** A gateway that stands still between its two round trips holds its accounts' locks for as long. */
export const idleInTransactionMs = 1_000;
/** One that was cut off for that may hold them longer with its next try: without CPU to spare it would never come to an end. */
export const idleInTransactionMostMs = 4_000;
export const batchOperationsMax = 1_000;
/** An operation that waits longer fails, or its client is cut off if its outcome is unknown. */
export const giveUpMs = journalGiveUpMs;
/** How often is looked for those. */
export const giveUpLookMs = 200;
export const retryFirstMs = 20;
export const retryMostMs = 500;
/** Without anything to do, an empty batch shows that the lane lives. */
export const heartbeatMs = 3_000;
/** Without a batch for so long, requests should go to another gateway. */
export const laneStillMs = 5_000;
export const lanesLookMs = 1_000;
/** A look that comes so late says that the looker stood still: nothing that it saw before counts. */
export const lanesLookLateMs = 3_000;
/** A lane whose row has not changed for so long, by the clock of who looks, is gone. */
export const laneGoneMs = 15_000;
/** Gone lanes stay for an operator's eyes, and for gateways that come back. */
export const goneLanesKeptMs = 24 * 3_600_000;
/** How often a lane compares its rows in `holds` with its open requests. */
export const guardIntervalMs = 60_000;
/** When a named key was last used is written with its other columns, or after so long. */
export const keyUsedStaleMs = 60_000;
/** Who a key belongs to is asked again after so long; what a request may do is decided on the locked rows. */
export const keyHintMs = 1_000;
/** How often a gateway asks for its share of the nodes' slots: while requests wait there, and otherwise. */
export const sharesBusyMs = 250;
export const sharesIdleMs = 1_000;
/** How often gateways tell each other what work they did; for so many end users and keys, and for so many accounts beside. */
export const workEveryMs = 900;
export const workRowsMax = 500;
/** A line that begins has its gateway ask at once, but not more often. */
export const sharesSoonestMs = 100;

assert(
  idleInTransactionMs < lockTimeoutMs && lockTimeoutMs < callTimeoutMs,
  "the server reports the end of a lock wait",
);
assert(migrationLockMs < batchLockMs, "a batch outlives a migration that waits");
assert(heartbeatMs + callTimeoutMs < laneGoneMs, "a lane whose heartbeat was lost once is not gone");
assert(heartbeatMs + retryMostMs < laneStillMs, "a lane that has nothing to do does not seem to stand still");
assert(callTimeoutMs < giveUpMs, "a batch is tried more than once before its clients are cut off");
