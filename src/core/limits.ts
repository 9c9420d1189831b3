// Limits that more than one room uses, each with its reason; the unit comes last in the name. A limit that one file uses
// stands in that file, one that several files of a room use in the room's limits.ts. Relations between limits are asserted
// where both can be seen, so that a change that breaks one fails at start.
import { assert } from "./assert.ts";
import { dayMs, hourMs } from "./units.ts";

// The service's own limits
export const bodyMaxBytes = 33_554_432; // 32 MiB, every endpoint
/** Of the secret that seals what clients carry, and links in mails. */
export const sealingKeyBytes = 32;
export const tokenizeTextMaxBytes = 4_000_000;
export const outputTokensMin = 1;
export const outputTokensMax = 65_536;
export const outputTokensDefault = 4_096;
/** Answers of one request, over all its prompts; evaluations send as many prompts at once as a node has slots. */
export const answersMax = 256;
/** Answers of one request that run or wait at once: the rest must not use up the longest wait before their turn. */
export const answersAtOnceMax = 32;
/** Hosted models use no more (spec, request fields), and nodes get no more. */
export const stopSequencesMax = 4;
/** UTF-16 units of all further stop sequences, which the gateway itself looks for in other models' output. */
export const furtherStopsMaxLength = 16 * 1024;

// A shop's own models
export const ownModelNameMaxLength = 200;
/** Names of one model beside its id. */
export const modelNamesMax = 100;

// Windows of requests
export const floodRequestsMax = 120;
/** Stands for "unlimited": more than anyone can use, and small enough that sums stay exact. */
export const amountMax = 1_000_000_000_000_000;
/** Embeddings and reranking have a window of their own: a file of 33 KB, put into a chat, is 39 requests at once. */
export const inputRequestsPerMinuteDefault = 3_000;
export const coderWindowMs = 4 * hourMs; // 00:00, 04:00, ... UTC

// Balance: 1,000,000 balance tokens are worth 500 cents (spec, "Balance")
export const centsPerMillionBalanceTokens = 500;
/** Prices are exact to this fraction of a cent per million tokens: six decimals of a dollar. */
export const partsPerCent = 10_000;
export const creditPurchaseMinTokens = 1_000_000;
export const creditPurchaseMaxTokens = 100_000_000;

// Streams (clients and proxies give up after 15 s or more without a byte)
/** A stream's headers wait this long for the first piece, so that a node's quick refusal still gets its own status. */
export const streamOpenDelayMs = 4_000;
export const keepAliveIntervalMs = 10_000;

// Nodes
/** A node that does not answer counts as busy within 3 s. */
export const nodeConnectTimeoutMs = 2_500;
/** Text of one count by a node. Counting is free for clients, so it must not keep nodes busy. */
export const nodeCountBytesMax = 1024 * 1024;
/** The greatest values of limits that plans and keys may have. */
export const weightMax = 100;
export const perMinuteMax = 1_000_000;

/** `retry-after` of a refusal because of load. */
export const busyRetrySeconds = 5;
/** Slots of a node that does not report how many requests it runs at once: what a small vLLM takes. */
export const nodeSlotsDefault = 64;
export const nodeSlotsMax = 100_000;
/** llama-server's own default of concurrent requests. */
export const ggufSlots = 4;

// Queue
export const queueMaxWaitMs = 600_000;
/** Requests in line over all accounts; further ones are refused as busy. */
export const queuePlacesMax = 20_000;
/** While requests wait for their balance: how often to check for a new day, plan or purchase, or an expired wait. */
export const balanceLookMs = 1_000;

// Keys of an account
export const keyNameMaxLength = 64;
/** Models or address ranges that a key lists. */
export const keyListMax = 50;
/** Keys that each relay remembers, by their hashes. */
export const keyCacheEntriesMax = 100_000;

// Stored responses
/** Responses that wait to be written; beyond this none is stored, so that a slow disk costs no memory. */
export const storedResponsesWaitingBytesMax = 64 * 1024 * 1024;
/** Waiting lookups of an account; further ones are refused as busy. Twice what flood protection admits a minute. */
export const storedResponsesLookupsWaitingMax = 256;
/** With less free space than this, no response is stored and no scheduled backup made: the ledger needs the rest. */
export const diskReserveBytes = 512 * 1024 * 1024;

// Accounts
export const emailMaxLength = 254; // RFC 5321: a path of 256 octets with its angle brackets
/** An operator's grant, in balance tokens: $5,000,000. Sums stay far below 2^53. */
export const creditGrantMaxTokens = 1_000_000_000_000;

// Console: sign-in
export const sessionMaxMs = 30 * dayMs;
export const signInWindowMs = 15 * 60_000;
/** For one name from one address, or from one browser that signed in with it before. Others' attempts do not count. */
export const signInTriesMax = 10;
/** Per address: many people may share one, and one may try many accounts. */
export const signInAddressTriesMax = 100;
export const passwordLinkMs = dayMs;
export const linkMaxMs = 90 * dayMs;
/** Names and addresses whose attempts are remembered; beyond it the oldest are forgotten. */
export const triedKeysMax = 100_000;
export const passwordMinLength = 8;
/** argon2id reads all of it, so it is bounded. */
export const passwordMaxLength = 1024;

// Charts and the console
/** Models, nodes and accounts kept of each minute or hour; those with the fewest requests are counted together. */
export const activityNamesMax = 100;

// Token counts, which are free and not limited per minute
/** Counts that may wait: they are free and not limited per minute. */
export const countingPlacesMax = 4_096;
/** Waiting counts of an account; agents ask for 24 at once. */
export const countingAccountPlacesMax = 256;

// Large bodies, which a Worker reads
/** Bodies from this size on go to a Worker; a typical one of this size parses in 5 ms. */
export const largeBodyMinBytes = 512 * 1024;
/**
 * A body with more brackets, commas and colons counts as large, whatever its size: with as many as fit into 512 KiB it
 * stopped the thread for 150 ms. Conversations of that size have 20,000.
 */
export const smallBodyTokensMax = 50_000;
export const largeBodiesAccountBytesMax = 128 * 1024 * 1024;

// Web search
export const searchTimeoutMs = 10_000;

// Images and files by URL (spec, per-request limits)
/** An image of 50 megapixels takes 200 MB of memory where it is decoded. */
export const imagePixelsMax = 50_000_000;

// Embeddings and reranking
/** Texts or documents of one request; OpenAI takes 2,048. */
export const inputsMax = 16_384;
/** What models put around each text: two tokens, and four around a query with its document. */
export const tokensAroundInput = 4;
/** The largest readable answer of a node: 2,048 vectors of 4,096 numbers as text are 184 MB. */
export const inputsAnswerMaxBytes = 192 * 1024 * 1024;
/** What one account's replies may take of each thread's memory while they are built or sent. */
export const inputsRepliesAccountBytesMax = 224 * 1024 * 1024;

// Web search
export const searchResultsMax = 8;

// JSON from outside: of requests, nodes and services
export const jsonDepthMax = 128;
/** Shorter texts are parsed without a scan: one of only brackets takes 1.3 MB and a millisecond. */
export const jsonScanMinLength = 16 * 1024;

assert(keepAliveIntervalMs <= 15_000, "a waiting stream must show life every 15 s");
assert(streamOpenDelayMs > nodeConnectTimeoutMs, "a dead node must be noticed before the stream opens");
assert(bodyMaxBytes <= largeBodiesAccountBytesMax, "every allowed body finds room");
assert(outputTokensDefault <= outputTokensMax, "the default budget must be allowed");
assert(outputTokensMin <= outputTokensDefault, "the default budget is a budget");
assert(dayMs % coderWindowMs === 0, "coder windows counted from 1970 open at midnight");
assert(creditPurchaseMinTokens <= creditPurchaseMaxTokens, "something can be bought");
assert(passwordMinLength < passwordMaxLength, "there are passwords");
assert(inputsAnswerMaxBytes < inputsRepliesAccountBytesMax, "every allowed answer finds room");
assert(2 * floodRequestsMax <= storedResponsesLookupsWaitingMax, "look-ups wait where flood protection lets them come");
