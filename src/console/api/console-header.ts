// Header of the playground's calls to /v1, which no other site can send along.
export const consoleHeader = "x-tollgate-console";
/** The name under which a page may take its change back. */
export const undoHeader = "x-tollgate-undo";
