// Limits that SQLite's and PostgreSQL's sides share, or several files of one; the unit comes last in the name.

// End users
/** Daily use of end users is kept for a clock that steps back; the journal has it anyway. */
export const endUserUseKeepDays = 31;
/** End users on the usage page: those who cost most. */
export const endUsersShownMax = 50;

// Journal
/** BUSY or a full disk: how long to retry before the ends that wait fail. */
export const journalGiveUpMs = 10_000;

// Retention: old lines of the journal are folded into sums
export const foldSliceLines = 250; // in one commit
export const foldFirstMs = 3_000; // after the start
export const foldIntervalMs = 10 * 60_000; // when nothing was left to fold

// The ledger's check of itself
export const ledgerCheckFirstMs = 2_000; // after the start
export const ledgerCheckIntervalMs = 60_000;

// Stored responses
export const storedResponsesPauseMs = 1_000;
/** The pause when nothing is left to expire. */
export const storedResponsesExpiryIntervalMs = 60_000;

// The usage index
/** How far the order of the journal's lines may differ from that of their times: the wall clock may step. */
export const journalDisorderMs = 60_000;
