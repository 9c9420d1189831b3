// Limits that several files here use, or that must fit each other; the unit comes last in the name.
import { assert } from "../core/assert.ts";

/** What a model reads of one result. */
export const searchResultTextMaxLength = 4_000;

/** Concurrent fetches of one request. */
export const mediaFetchesAtOnceMax = 4;
/** More characters than the largest context holds. */
export const pdfTextMaxLength = 1_000_000;
export const publicFetchesAccountMax = 8;

assert(mediaFetchesAtOnceMax < publicFetchesAccountMax, "one request leaves turns to the account's others");
