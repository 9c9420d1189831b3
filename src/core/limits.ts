// Every limit that somebody outside can meet, with its reason; the unit comes last in the name. A number that only one
// file uses is in that file. Relations between limits are asserted at the end, so that a change that breaks one fails
// at start.
import { assert } from "./assert.ts";

// The service's own limits
export const bodyMaxBytes = 33_554_432; // 32 MiB, every endpoint
export const tokenizeTextMaxBytes = 4_000_000;
export const outputTokensMin = 1;
export const outputTokensMax = 65_536;
export const outputTokensDefault = 4_096;
/** Of one request for several, all prompts together; evaluations send as many prompts at once as a node has slots. */
export const answersMax = 256;
/** Of these on nodes or in line at once: the others must not wait out the line's limit before it is their turn. */
export const answersAtOnceMax = 32;
/** Hosted models use no more (spec, request fields), and no node is sent more. */
export const stopSequencesMax = 4;
/** UTF-16 units of the further ones together, which the gateway looks for itself in what other models write. */
export const furtherStopsMaxLength = 16 * 1024;

// A shop's own models
/** Of a model of which neither its row nor a node says one: larger than any, so that the node's own answer counts. */
export const ownModelContextTokensDefault = 1_048_576;
export const ownModelNameMaxLength = 200;
/** A request that names no budget begins with this much of one or more: less is no answer. */
export const openBudgetMinTokens = 256;
/** So far ahead of what an answer has is held for it where its request named no budget: as much as another's default. */
export const openBudgetAheadTokens = outputTokensDefault;
/** Names of one model beside its id. */
export const modelNamesMax = 100;
/** Models that nodes list and nobody configured; a hosted catalog of all the world's has some 500. */
export const listedModelsMax = 1_000;
export const priceMaxDollars = 10_000;

// Windows of requests
export const floodWindowMs = 60_000;
export const floodRequestsMax = 120;
/** What is not limited has this much: more than can be used, and so little that sums stay exact. */
export const amountMax = 1_000_000_000_000_000;
export const dailyAllowanceMaxTokens = 1_000_000_000_000;
export const planNameMaxLength = 60;
export const plansMax = 100;
/** Embeddings and reranking have a window of their own: a file of 33 KB, put into a chat, is 39 requests at once. */
export const inputRequestsPerMinuteDefault = 3_000;
export const inputRequestsPerMinuteMax = 1_000_000;
export const hourMs = 3_600_000;
export const dayMs = 24 * hourMs;
export const coderWindowMs = 4 * hourMs; // 00:00, 04:00, ... UTC

// Balance: 1,000,000 balance tokens are worth 500 cents (spec, "Balance")
export const centsPerMillionBalanceTokens = 500;
/** Prices are exact to so many parts of a cent per million tokens, six decimals of a dollar. */
export const partsPerCent = 10_000;
export const creditPurchaseMinTokens = 1_000_000;
export const creditPurchaseMaxTokens = 100_000_000;

// Compressed request bodies
/** The output is never larger than this many times the input; agents' conversations are compressed to a tenth. */
export const inflatedRatioMax = 100;
/** Small bodies of repeated text are compressed better than that, and cost little. */
export const inflatedAlwaysMaxBytes = 1024 * 1024;
/** Bodies that are inflated at once on a thread, each at up to 32 MiB and a core for 60 ms; more wait for their turn. */
export const inflatingMax = 4;
export const inflatingAccountMax = 2;

// Pages of other sites
/** A browser asks before a page's first request and then not for this long; Chromium takes no more than 2 hours. */
export const preflightMaxAgeSeconds = 7_200;

// Streams (clients and proxies give up after 15 s or more without a byte)
/** A stream's headers wait this long for the first piece, so that a node's quick refusal still gets its own status. */
export const streamOpenDelayMs = 4_000;
export const keepAliveIntervalMs = 10_000;
/** A client that reads nothing for this long is cut and charged for what was produced. */
export const clientStallMs = 120_000;

// Nodes
export const nodeConnectTimeoutMs = 2_500; // a node that does not answer is told as busy within 3 s
/** A connection that was alive within the last second is not half open (fault 23 of test/fixtures/node-faults.ts). */
export const nodeIdleSocketMs = 1_000;
/** An older one is used where its node's system answered a probe within this time: they are a second apart. */
export const nodeHeardMs = 1_500;
/** Between two looks at those that carry a request, which also is how often their nodes' systems are probed. */
export const nodeBusyLookMs = 10_000;
/** A node whose system answered nothing for this long is gone, with its power or its network; a program may be silent for longer. */
export const nodeGoneMs = 30_000;
/** How long it is kept at most, as nginx does. Engines that do not say for how long close after 5 s. */
export const nodeKeptSocketMs = 60_000;
/** Longest silence before the first token: 15 minutes are allowed. */
export const nodeFirstPieceMs = 20 * 60_000;
/** Longest silence between two reads once the answer has begun; 15 minutes are allowed before the first. */
export const nodeStallMs = 16 * 60_000;
/** A read that large ends what is read of a node in a turn: of a quick one, the runtime would read 6 MB more at once. */
export const nodeReadRestBytes = 256 * 1024;
export const nodeLineMaxBytes = 4 * 1024 * 1024;
/** Data lines of one event, which engines write as one: each takes 60 bytes of memory, however short it is. */
export const nodeEventLinesMax = 50_000;
export const nodeHeadMaxBytes = 64 * 1024;
export const nodeErrorBodyMaxBytes = 64 * 1024;
/** What of an error body is read for its meaning, and what of a node's words the log gets, in UTF-16 units. */
export const nodeErrorTextMaxLength = 8 * 1024;
export const nodeWordsMaxLength = 300;
export const nodeSocketsIdleMax = 256;
/** Of a list of models and of what else an engine tells of itself; what is longer is not understood. */
export const nodeFactsBodyMaxBytes = 1024 * 1024;
export const nodeModelNameMaxLength = 512;
/** A context below this is no model's: who says so would have every request refused. */
export const nodeContextMinTokens = 128;
/** What an engine tells of itself is read anew so often, also while it is busy: it may have been started as another one. */
export const nodeFactsIntervalMs = 3 * 60_000;
/** A node that is down is looked at after this, then after ever twice the time, up to the interval. */
export const nodeFirstProbeMs = 250;
export const nodeProbeIntervalMs = 5_000;
/** A node that is well and idle is looked at this often; each look is a line in the access log of most engines. */
export const nodeIdleLookIntervalMs = 15_000;
/** So many looks in a row that connect and get no answer: engines of one thread answer nothing while they are busy. */
export const nodeSilentLooksMax = 3;
export const nodeLooksAtOnceMax = 32;
export const nodeProbeTimeoutMs = 3_000;
/** Where no model is named, the first requests wait so long for the node's list: `transformers serve` takes 6 s for its first. */
export const nodeFirstLookMaxMs = 10_000;
/** A token that an operator's command asks for, of a model that may have to be loaded. */
export const nodeTrialTimeoutMs = 30_000;
/** Accounts of a node's line that operators are shown by name: those with most requests in it. */
export const lineAccountsShownMax = 5;
/** A node that said 429 or 503 gets no new request for this long. */
export const nodeCoolOffMs = 1_000;
/** After a request failed on a node, requests that another could take go there for this long, or until one is answered here. */
export const nodeDoubtMs = 15_000;
/** The same after a look at a node that has requests was not answered: until the next such look has ended. */
export const nodeSilentDoubtMs = 30_000;
/** After the finish reason, a node may be silent for this long before its answer counts as complete. */
export const nodeAfterFinishMs = 900;
/** A node's own count is worth this wait, then ours is answered (agents ask 24 at once and expect them within a second). */
export const nodeCountTimeoutMs = 900;
/** Counting is free for clients: what nodes tokenize at once for that is bounded, so that it does not keep them busy. */
export const nodeCountBytesMax = 1024 * 1024;
export const nodeCountsBytesMax = 4 * 1024 * 1024;
/** Calls of one answer: one with more ends there, with `length`. No client runs as many. */
export const answerCallsMax = 128;
/** Longer names of tools are nobody's: the dialects take 64 and 128 characters. */
export const calledNameMaxLength = 1_024;
/**
 * UTF-16 units of one answer, and of the log probabilities, as JSON, of one that is not streamed: what is collected is in
 * memory. The largest context of the catalog has a million characters.
 */
export const answerMaxLength = 8 * 1024 * 1024;
export const answerLogprobsMaxLength = 64 * 1024 * 1024;
/** `retry-after` of a busy refusal. */
export const busyRetrySeconds = 5;
/** Of one whose model's nodes are all drained: an engine's restart takes minutes. */
export const pausedRetrySeconds = 30;

/** A node that does not say how many requests it runs at once gets this many places: what a small vLLM takes. */
export const nodeSlotsDefault = 64;
export const nodeSlotsMax = 100_000;

// Slots that follow an engine's load
/** So many to begin with, where the engine does not say how many it runs: one that runs fewer is known by its second answer. */
export const autoSlotsStart = 16;
/** Of its cache, from 0 to 1: vLLM sets requests back when it is full, and more requests need more of it with every token. */
export const autoSlotsCacheFull = 0.95;
export const autoSlotsCacheRoom = 0.85;
/** What waits while prompts are read for longer than that waits for the reading, not for a place. */
export const autoSlotsReadingMs = 100;
/** After so many growths their step is doubled. */
export const autoSlotsGrowthsOfStep = 2;
/** Each look is a line in the access log of some engines. */
export const loadIntervalMs = 1_000;
export const loadFullIntervalMs = 250;
export const loadUntoldIntervalMs = 60_000;
/** Without a request so many looks are made before they end. */
export const autoSlotsIdleLooksMax = 5;
export const autoSlotsSilentLooksMax = 3;

// Nodes that the gateway starts itself
/** Loading a large model from a cold disk takes minutes. */
export const managedStartTimeoutMs = 10 * 60_000;
/** A node that had begun to answer and then does not for this long is started again. */
export const managedSilenceMs = 2 * 60_000;
export const managedStopGraceMs = 10_000;
export const managedRestartMinMs = 1_000;
export const managedRestartMaxMs = 60_000;
/** A node that answered for this long is started again without the waits of its earlier failures. */
export const managedSettledMs = 60_000;
/** llama-server's own number of requests at once. */
export const ggufSlots = 4;

// Queue
export const queueMaxWaitMs = 600_000;
export const queuePlacesMax = 20_000; // requests in line over all accounts; more are refused as busy
/** Requests of an account that wait until its others have settled: as many as flood protection lets pass in a minute. */
export const balanceWaitingAccountMax = 120;
/** While some wait: between two looks whether a day, a plan, a purchase or the longest wait has changed something. */
export const balanceLookMs = 1_000;

// Keys of an account
export const keysMax = 100;
/** With those that were revoked, which stay for the names of the lines that they made. */
export const keysEverMax = 5_000;
export const keyNameMaxLength = 64;
/** Models or address ranges that a key names. */
export const keyListMax = 50;
/** Named keys that the metrics of a thread tell apart. */
export const metricKeysMax = 200;
/** Of an end user's name; a longer one is cut, and told apart by a digest. */
export const endUserNameMaxLength = 128;
/** Names that an account's programs may bring new in a UTC day; those beyond count as one end user. */
export const endUsersNewPerDayMax = 20_000;
/** End users of all accounts in memory; the disk knows the others. About 0.7 KB each. */
export const endUsersLoadedMax = 10_000;
/** What end users used on a day is kept for a clock that steps back; the journal has it anyway. */
export const endUserUseKeepDays = 31;
/** Of those days, removed with each commit that has charges of end users. */
export const endUserUsePruned = 64;
/** On the usage page: those who cost most. */
export const endUsersShownMax = 50;
/** When keys were last used is written down now and then, so many at once: no request waits for it. */
export const keysUsedIntervalMs = 5_000;
export const keysUsedBatch = 200;

// Journal
export const journalGiveUpMs = 10_000; // BUSY or a full disk: retry this long, then the held ends fail
export const journalBusyMs = 1_000; // a commit waits this long for another program's lock before nothing more is admitted
export const journalRetryIntervalMs = 50; // between two tries of a batch that found the disk busy or full
export const journalProbeIntervalMs = 250; // between two looks whether a disk that took no writes takes them again
export const ledgerPlaceIntervalMs = 1_000; // between two looks whether the ledger's files are where they were
export const journalIdleCheckpointMs = 1_000; // without a commit: then the log is moved into the database

// Retention: old lines of the journal are folded into sums
export const foldSliceLines = 250; // in one commit
export const foldFirstMs = 3_000; // after the start
export const foldIntervalMs = 10 * 60_000; // when nothing was left to fold

// The ledger's check of itself
export const ledgerCheckFirstMs = 2_000; // after the start
export const ledgerCheckIntervalMs = 60_000;
/** A check of the disk ends after this long and goes on in the next. */
export const ledgerCheckMaxMs = 45_000;

// Watching requests
/** Gaps between the reads of an answer are measured in one of N requests. */
export const gapStreamsPerSample = 64;

/** Between two looks whether the socket of the commands is there, and the file of stored responses. */
export const folderLookIntervalMs = 1_000;

// Flushes of the data folder's disk, measured at start
export const flushSamples = 200;
export const flushSamplePauseMs = 10; // so that the first requests' commits find the disk free
/** No disk that keeps its promise is quicker: one that is has probably not written anything yet. */
export const flushMedianMinUs = 20;
export const flushSlowestPercentMaxMs = 50;

// Memory
/** After the start, and again while requests are open, so often at most: when what starting left behind is given back. */
export const startLeftoversMs = 250;
export const startLeftoversLooks = 8;

// Warming up after a start
/** In each as many streams of each dialect as its number, up to the most: 212 in all. 50 rounds win 5 ms of 80 and take 150 ms more CPU. */
export const warmUpRounds = 30;
export const warmUpAtOnceMax = 8;
/** Between them, when real requests have their turn. */
export const warmUpPauseMs = 2;
/** So long it waits for a gateway that is busy, which warms itself up. */
export const warmUpPatienceMs = 10_000;

// Stopping
/** Open replies may go on for this long after SIGTERM, unless the configuration says otherwise. */
export const stopGraceMs = 30_000;

// Threads
export const threadsMax = 64;
/** Keys that each relay remembers, by their hashes. */
export const keyCacheEntriesMax = 100_000;

// Stored responses
export const storedResponsesKeepDays = 30;
/** An account's share, in which the oldest go first; both are far above what a person's conversations need. */
export const storedResponsesMaxMib = 100;
export const storedResponsesCountMax = 10_000;
/** What may wait to be written; more is not kept, so that a slow disk costs no memory. */
export const storedResponsesWaitingBytesMax = 64 * 1024 * 1024;
/** Responses that end within this time are written together; whoever asks for one before has them written at once. */
export const storedResponsesGatherMs = 20;
export const storedResponsesAwaitedGatherMs = 1; // where the end of a reply waits for it
/** Concurrent look-ups, one per account: the largest conversations of this many accounts are in memory at a time. */
export const storedResponsesLookupsMax = 4;
/** Of an account; more are refused as busy. Twice the requests that flood protection lets pass in a minute. */
export const storedResponsesLookupsWaitingMax = 256;
/** Below this much free space on the disk no response is stored and no backup made by itself: the ledger needs the rest. */
export const diskReserveBytes = 512 * 1024 * 1024;
/** Expiry goes in slices with a pause after each (480 MiB a minute); when nothing is left, it looks again later. */
export const storedResponsesExpirySliceBytes = 8 * 1024 * 1024;
export const storedResponsesPauseMs = 1_000;
export const storedResponsesExpiryIntervalMs = 60_000;

// Backups that the server makes by itself
export const scheduledBackupsKeptDefault = 7; // a week of daily ones
/** The longest wait until the next look whether one is due: sleeping machines and set clocks move that. */
export const scheduledBackupLookMs = hourMs;

// Notices
/** What is looked at: nodes, balances, budgets, backups, the ledger's check. */
export const noticeLookMs = 5_000;
/** A node that is away for so long is told of, and one that then was there for so long. */
export const nodeDownNoticeMs = 30_000;
export const nodeUpNoticeMs = 15_000;
/** After a node was told to be down it is not again for so long: one that flaps makes 200 notices a day at most. */
export const nodeNoticeIntervalMs = 15 * 60_000;
export const ledgerNoticeIntervalMs = 15 * 60_000;
/** Accounts in memory that a look compares with the threshold: 0.2 ms. */
export const noticeAccountsPerLook = 2_000;
export const lowBalanceTokensDefault = 200_000; // one US dollar
export const diskLookMs = 60_000;
/** Below this it is told, above that it may be told again. */
export const diskLowBytes = 1024 * 1024 * 1024;
export const diskWellBytes = 1536 * 1024 * 1024;
/** For one webhook; more are given up. */
export const noticesWaitingMax = 100;
export const webhookReplyMs = 10_000;
export const webhookReachMs = 3_000;
/** Pauses after each try that failed: 3.7 hours in all. */
export const webhookRetriesMs: readonly number[] = [
  5_000,
  30_000,
  2 * 60_000,
  10 * 60_000,
  30 * 60_000,
  hourMs,
  2 * hourMs,
];
/** Of the secret that signs; Standard Webhooks takes no others. */
export const webhookSecretMinBytes = 24;
export const webhookSecretMaxBytes = 64;

// Accounts
export const emailMaxLength = 254; // RFC 5321: a path of 256 octets with its angle brackets
/** An operator's grant, in balance tokens: $5,000,000. Sums stay far below 2^53. */
export const creditGrantMaxTokens = 1_000_000_000_000;

// Console: sign-in
export const sessionIdleMs = 7 * dayMs;
export const sessionMaxMs = 30 * dayMs;
/** A session's last use is written at most this often. */
export const sessionUseIntervalMs = 5 * 60_000;
/** An account's browsers; the one that was used least recently goes first. */
export const sessionsMax = 20;
/** Sessions in memory; the others are read from disk when they are used. */
export const sessionsCachedMax = 10_000;
export const signInWindowMs = 15 * 60_000;
/** On one name from one address, or from one browser that signed in with it before. Others' tries count for nobody else. */
export const signInTriesMax = 10;
/** Per address: many people may share one, and one may try many accounts. */
export const signInAddressTriesMax = 100;
/** Accounts that may be made from an address in that window. */
export const signUpAddressTriesMax = 100;
/**
 * On one name from wherever: after these each next one waits, twice as long for every further step of them. A wait never
 * becomes a refusal: whoever tries must not be able to keep the name's owner out.
 */
export const signInNameTriesStep = 10;
export const signInDelayMinMs = 250;
export const signInDelayMaxMs = 4_000;
/** Bytes of the tokens of sessions and links. */
export const accessTokenBytes = 32;
export const invitationMs = 7 * dayMs;
export const passwordLinkMs = dayMs;
export const linkMaxMs = 90 * dayMs;
/** Used and expired links are kept this long for exports. */
export const linkKeptMs = 90 * dayMs;
/** Invitations that were not used, in the console. */
export const invitationsShownMax = 200;
/** A sign-in is fresh so long: enough to read, to download the data and to type an address. */
export const freshSignInMs = 10 * 60_000;
/** From the button to the answer of an identity provider. */
export const providerSignInMs = 10 * 60_000;
/** For each of its replies. */
export const providerReplyMs = 5_000;
export const providerReplyMaxBytes = 512 * 1024;
/** What it says of itself is asked again after this. */
export const providerKnownMs = hourMs;
/** People whose sign-in asks it at the same time. */
export const providerSignInsMax = 32;
/** Its clock may differ from ours by this many seconds. */
export const providerClockToleranceSeconds = 60;
/** A browser stays known for as long as browsers keep a cookie at most (400 days). */
export const knownBrowserMaxMs = 400 * dayMs;
/** What is remembered of tries; beyond it the oldest are forgotten. */
export const triedKeysMax = 100_000;
export const passwordMinLength = 8;
/** argon2id reads all of it, so it is bounded. */
export const passwordMaxLength = 1024;
/** argon2id takes 64 MiB and 50 ms of a core: at least one core is left to the streams. */
export const passwordHashesMax = navigator.hardwareConcurrency > 2 ? 2 : 1;
/** With those that wait out a delay; of more, those that tried most often are refused. */
export const passwordHashesWaitingMax = 128;
/** Of one name, so that tries on one do not take the places of others: 8 a second where they wait longest. */
export const passwordHashesNameWaitingMax = 32;

// Console: purchases and live numbers
export const purchaseRequestsPendingMax = 5;
/** Each stays in the ledger, whatever becomes of it. */
export const purchaseRequestsPerDayMax = 20;
export const liveIntervalMs = 500; // numbers are sent at most twice a second
export const liveStreamsMax = 2_000;
export const liveStreamsPerAccountMax = 16;
/** Per account: each reads all that is kept of it, as much as several hundred MB. */
export const exportsPerHourMax = 6;
export const consoleBodyMaxBytes = 64 * 1024;
export const webhookBodyMaxBytes = 1024 * 1024;

// Console: the usage index, which the reader keeps beside the journal
export const usageIndexSliceLines = 20_000; // lines of the journal in one step: about 70 ms
/** So much the order of the journal's lines may differ from that of their times: the wall clock may step. */
export const journalDisorderMs = 60_000;
export const usageIndexIntervalMs = 60_000; // between two looks for new lines while nobody asks
export const usageExportPageRows = 1_000;

// Console: what the operators' charts are made of
export const activityIntervalMs = 10_000; // between two writes: what a kill loses
export const activityIdleMs = 60_000; // its Worker ends when nothing came for so long
/** Models, nodes and accounts of a minute or hour, each; of more those with fewest requests are counted together. */
export const activityNamesMax = 100;
/** Counted and not yet taken: 4 MB where every minute has the most names. */
export const activityMinutesMax = 15;
export const activitySeriesMax = 6; // in a chart, the rest included
export const topAccountsMax = 10;
export const usagePatienceMs = 300; // so long charts wait for what only the usage index knows

// The request log: what was refused or failed. Of more than these, on each thread, others are counted on to those like them.
export const failedMinuteMax = 1_000; // rows in a minute, of all accounts
export const failedAccountMinuteMax = 60;
/** Accounts with reasons and models in a minute: each has one row at least. */
export const failedKindsMax = 1_000;
export const failedIntervalMs = 1_000; // between two writes: what a kill loses
export const failedIdleMs = 60_000; // its Worker ends when nothing came for so long
/** Rows of an account, and in all (40 MB): the oldest go. */
export const failedAccountRowsMax = 10_000;
export const failedRowsMax = 200_000;
/** Lines of the journal that a search reads in one step, and how long it goes on. */
export const logSearchLines = 20_000;
export const logSearchMs = 400;

// Token counts, which are free and not limited per minute: what may wait to be counted is
export const countingPlacesMax = 4_096;
export const countingBytesMax = 256 * 1024 * 1024;
/** 24 counts at once are usual for agents; 20 texts of the largest size must do. */
export const countingAccountPlacesMax = 256;
export const countingAccountBytesMax = 96 * 1024 * 1024;
/** The counter's tables are let go of after this long without a count. */
export const countingIdleMs = 5 * 60_000;
/** Ids are answered as JSON, which the main thread writes: 256 KiB of text give up to 2 MB, a few milliseconds. */
export const tokenIdsTextMaxBytes = 256 * 1024;
/**
 * A charge waits this long for the count of an input that no node reported, the first part of it for the node's own: time
 * for our counter to come from its rest. Its hold is open meanwhile.
 */
export const unreportedCountTimeoutMs = 2_000;
export const unreportedNodeCountTimeoutMs = 400;
/** Bodies from here on are parsed one in a turn of the event loop where only a count waits for them: 256 KiB take 1 ms. */
export const bodyTurnMinBytes = 256 * 1024;

// Large bodies, which a Worker reads
/** From here on; a usual one of this size is parsed in 5 ms. */
export const largeBodyMinBytes = 512 * 1024;
/**
 * A body of more brackets, commas and colons counts as large, whatever its size: with as many as fit into 512 KiB it
 * stopped the thread for 150 ms. Conversations of that size have 20,000.
 */
export const smallBodyTokensMax = 50_000;
/** What bodies that wait, are read or belong to open requests may take; as much again is what a node gets of them. */
export const largeBodiesBytesMax = 512 * 1024 * 1024;
export const largeBodiesAccountBytesMax = 128 * 1024 * 1024;
/** The Worker is ended after this long without a large body. */
export const largeBodyIdleMs = 2 * 60_000;
/** Tools, schemas and other settings of a large body, in UTF-16 units of JSON: more tokens than any context has. */
export const largeSettingsMaxLength = 2 * 1024 * 1024;
/** What every object of a response repeats of them and of its instructions, as the text that it is: as much of each. */
export const largeEchoMaxLength = 2 * largeSettingsMaxLength;
/** Parts of a request that must be fetched or read; no more than this could be in its time. */
export const mediaPartsMax = 1_000;

/** Counts that a node made, by content. */
export const countingCacheEntriesMax = 4_096;
export const countingCacheMs = 60_000;

// Web search
export const searchTimeoutMs = 10_000;
/** An answer of a search service; 20 results with their snippets are 100 KB. */
export const searchAnswerMaxBytes = 2 * 1024 * 1024;
/**
 * The day's searches count where something was found; the operator pays for each call of the search service. An account
 * that made so many for each of its searches gets no further search that day.
 */
export const searchCallsPerSearchMax = 5;
/** Searches at once; more wait for their turn, no longer than a search may take. */
export const searchesAtOnceMax = 64;
export const searchesAccountMax = 16;
/** What a model reads of one result. */
export const searchResultTextMaxLength = 4_000;
/** Results read whole: snippets of 150 characters seldom hold the answer. Tavily sends excerpts of the pages itself. */
export const searchPagesDefault = { searxng: 3, brave: 3, tavily: 0 } as const;
export const searchPagesMax = 10;
export const searchPageMaxBytes = 2 * 1024 * 1024;
/** For all pages of a search; those that are not there by then keep their snippets. */
export const searchPagesTimeoutMs = 5_000;
export const searchPageRedirectsMax = 5;

// The local index of files
export const searchRescanIntervalMs = 60_000;
export const searchFileMaxBytes = 32 * 1024 * 1024;
/** Of one file; a book has 1,000,000 characters. What is behind is not found. */
export const searchFileTextMaxLength = 4_000_000;
export const searchFilesMax = 200_000;
/** Between two lines of the log while files are being indexed. */
export const searchProgressIntervalMs = 5_000;
/** Files are found by their passages, of about a page's half: long enough to answer, short enough to rank. */
export const searchPassageLength = 1_500;

// MCP servers
export const mcpConnectTimeoutMs = 30_000; // npx may have to fetch the server first
export const mcpCallTimeoutMs = 60_000;
/** Concurrent calls of one server; more wait for their turn, no longer than a call may take. */
export const mcpCallsAtOnceMax = 64;
export const mcpCallsAccountMax = 16;
export const mcpResultTextMaxLength = 100_000;
export const mcpToolsMax = 256; // of one server: they are part of every prompt
export const mcpToolMaxBytes = 64 * 1024;
/** Of one answer on the wire; what a model reads of it is far less. */
export const mcpAnswerMaxBytes = 16 * 1024 * 1024;
/** A server that does not answer a ping for this long is gone. */
export const mcpProbeTimeoutMs = 5_000;
export const mcpFarewellMs = 1_000;
export const mcpReconnectMinMs = 1_000;
export const mcpReconnectMaxMs = 60_000;

// Images and files by URL (spec, per-request limits)
export const mediaFetchBytesMax = 8 * 1024 * 1024;
export const mediaFetchTimeoutMs = 20_000;
export const mediaRedirectsMax = 5;
/** Of one request: how many at a time, how many in all, how many bytes together, and after what time the rest is left out. */
export const mediaFetchesAtOnceMax = 4;
export const mediaFetchesMax = 100;
export const mediaRequestBytesMax = 32 * 1024 * 1024; // as much as a body may bring inline
export const mediaRequestTimeoutMs = 60_000;
/**
 * What open requests hold of fetched bytes and of what became of them, in all and for one account; a part that finds no
 * room is left out.
 */
export const mediaHeldBytesMax = 512 * 1024 * 1024;
export const mediaAccountHeldBytesMax = 128 * 1024 * 1024;
/**
 * What a request's images and files become, in UTF-16 units, in all the places where they stand: one part may be named
 * again and again. Images: everything that may be fetched, as base64 and once. Text: the largest file with its name,
 * which is several times what the largest context holds; a node's JSON of more would stop the streams for too long.
 */
export const mediaImagesMaxLength = 48 * 1024 * 1024;
export const mediaTextMaxLength = 10_000_000;
/** An image of 50 megapixels takes 200 MB of memory where it is decoded. */
export const imagePixelsMax = 50_000_000;
/** PDFs are read in processes of their own; a page of text takes a few milliseconds. */
export const pdfPagesMax = 500;
export const pdfTextMaxLength = 1_000_000; // more characters than the largest context holds
export const pdfTimeoutMs = 15_000;
export const pdfMemoryMaxBytes = 512 * 1024 * 1024;
/** Processor time of a first try: 200 full pages. What takes longer goes behind all others. */
export const pdfFirstTryProcessorMs = 1_000;
export const pdfReadersMax = 4;
export const pdfReadersAccountMax = 2;
/** Second tries run beside them, and beside those the PDFs of accounts that lately sent one beyond the limits. */
export const pdfSlowReadersMax = 1;
export const pdfExcessRememberedMs = 10 * 60_000;
/** Accounts that are remembered for it; beyond that the oldest are forgotten. */
export const pdfExcessAccountsMax = 10_000;
/** Fetches of addresses that strangers chose, of pages found by a search too. */
export const publicFetchesMax = 64;
export const publicFetchesAccountMax = 8;
export const publicConnectTimeoutMs = 5_000;

// Programs that run as our children
/** Of what they write: a line is cut, and a minute's lines after these are dropped. */
export const childLogLineMaxLength = 1_000;
export const childLogLinesPerMinuteMax = 60;

// Embeddings and reranking
/** Texts, or documents, of one request; OpenAI takes 2,048. */
export const inputsMax = 16_384;
/** What models put around each text: two tokens, and four around a query with its document. */
export const tokensAroundInput = 4;
/** An input comes to no more tokens than this for each of its bytes: some scripts are taken apart before they are read. */
export const inputTokensPerByteMax = 2;
/** No model makes vectors of more numbers. */
export const vectorDimensionsMax = 65_536;
/** Of a node's answer what is read for one input: 8,192 numbers of 20 characters, and names beside them. */
export const inputAnswerMaxBytes = 192 * 1024;
/** Of a node's answer what is read at all: 2,048 vectors of 4,096 numbers as text are 184 MB. */
export const inputsAnswerMaxBytes = 192 * 1024 * 1024;
/** So much of one answer is read before others have their turn; 10 ms where numbers become base64. */
export const inputsAnswerTurnBytes = 512 * 1024;
/** All that stands around the list of an answer. */
export const inputsAnswerFrameMaxLength = 64 * 1024;
/** What replies that are made or going out may take on each thread that serves clients. */
export const inputsRepliesBytesMax = 512 * 1024 * 1024;
export const inputsRepliesAccountBytesMax = 224 * 1024 * 1024;
/** A larger reply goes out in such steps, and the room for each is taken in them. */
export const inputsReplyStepBytes = 256 * 1024;

// What a request is expected to read, before a node has counted it
/** Of inputs: English has 4 bytes a token and Chinese 3; dense code, digits and rare scripts come to 2, and seldom to 1. */
export const expectedBytesPerToken = 2;
/** What an engine puts around a prompt, until an answer has shown it: the longest templates with their system prompts. */
export const templateTokensUnknown = 4_096;
/** Texts from here on are expected to be as dense as those that came before, but never thinner than dense code and digits. */
export const longTextBytes = 2_048;
export const longTextTokensPerByteMin = 0.5;
/** What was unusual in one answer is nearly forgotten after a few times as many. */
export const answersRemembered = 64;
/** Of a large picture at the usual settings of engines; some take 16,384, most far less. */
export const expectedImageTokens = 4_096;

// The automatic tool loop
export const toolRoundsMax = 10; // generations of one request (spec, per-request limits)
export const ownedCallsAtOnceMax = 8;
/** Further calls of a round are not run, and the model is told. */
export const ownedCallsPerRoundMax = 32;
/** What a model reads of one result, and of all results of a round: 64,000 characters are about 16,000 tokens. */
export const toolResultMaxLength = 16_000;
export const toolResultsOfRoundMaxLength = 64_000;
export const searchResultsMax = 8;
export const searchQueryMaxLength = 400; // what Brave takes; others take more

// Structured output
/** A schema is refused beyond these before anything is reserved; the vendors' own limits are far below. */
export const schemaDepthMax = 64;
export const schemaValuesMax = 20_000;
export const schemaTextMaxLength = 256 * 1024;
/** Longest answer that is checked, in UTF-16 units: 65,536 tokens are about a quarter of it. */
export const checkedTextMaxLength = 1024 * 1024;
/** Passes that an answer which does not fit is asked for again: not billed, not in usage. */
export const answerRepeatsMax = 2;
/** Steps of a pattern with its repeats written out: each may be at each character of the text. */
export const patternStepsMax = 20_000;
/** A longer pattern is left out of what nodes compile into grammars; the answer is checked against it all the same. */
export const grammarPatternMaxLength = 1_000;
/** Repeats written out, of a pattern's parts, a text's length or a list's items: llama.cpp refuses more than 2,000. */
export const grammarRepeatsMax = 1_000;
/**
 * Tries of a check of one schema or answer. A try ends when it took longer than `wallMs` and has used `processorMs` by then
 * (usual checks take 20 ms, large schemas 50). Quick tries are made where nobody may be kept waiting, second ones after
 * all first ones; a thorough one behind the streams.
 */
export const quickCheckTries = [
  { processorMs: 10, wallMs: 25 },
  { processorMs: 50, wallMs: 100 },
] as const;
export const thoroughCheckTries = [{ processorMs: 500, wallMs: 500 }] as const;
/** Processor time of an account's thorough tries: beyond it, its schemas are too expensive until the time is over. */
export const thoroughChecksAccountMaxMs = 10_000;
export const thoroughChecksWindowMs = 60_000;
/** What is remembered of accounts whose checks took long; beyond it the oldest are forgotten. */
export const thoroughAccountsMax = 10_000;
/** A process that gives no verdict for this long hangs, however busy the machine is. */
export const checkSilenceMs = 60_000;
export const checkStartMs = 10_000;
/** The checking process is ended after this long without a check. */
export const checkIdleMs = 5 * 60_000;

// Fields that only some engines know
/** Characters of a grammar, of a regular expression, or of all choices. llama.cpp ends itself over brackets nested 100,000 deep. */
export const engineGrammarMaxLength = 16 * 1024;
export const grammarNestingMax = 256;
/** vLLM takes 8 s to compile 20,000. */
export const engineChoicesMax = 1_000;
/** Values of a list of tokens or words. */
export const engineListMax = 10_000;
/** Characters of the JSON of what a chat template gets. */
export const templateSettingsMaxLength = 64 * 1024;

// JSON from outside: of requests, nodes and services
export const jsonDepthMax = 128;
/** Brackets, commas and colons. The worst of them take 130 bytes of memory each, so that a body takes 260 MB at most; 400,000 messages are allowed. */
export const jsonTokensMax = 2_000_000;
/** Shorter texts are parsed as they come: of nothing but brackets, this takes 1.3 MB and a millisecond. */
export const jsonScanMinLength = 16 * 1024;

assert(keepAliveIntervalMs <= 15_000, "a waiting stream must show life every 15 s");
assert(streamOpenDelayMs > nodeConnectTimeoutMs, "a dead node must be noticed before the stream opens");
assert(nodeIdleSocketMs < 5_000, "nodes close idle sockets after 5 s");
assert(20 * tokenizeTextMaxBytes <= countingAccountBytesMax, "20 of the largest texts fit in an account's share");
assert(bodyMaxBytes <= largeBodiesAccountBytesMax, "every allowed body finds room");
assert(bodyTurnMinBytes <= largeBodyMinBytes, "bodies are parsed in turns before they are read elsewhere");
assert(bodyMaxBytes <= countingAccountBytesMax, "every allowed body can be counted");
assert(unreportedNodeCountTimeoutMs < unreportedCountTimeoutMs, "our own count has time behind the node's");
assert(outputTokensDefault <= outputTokensMax, "the default budget must be allowed");
assert(mediaFetchesAtOnceMax < publicFetchesAccountMax, "one request leaves turns to the account's others");
assert(mediaRequestBytesMax <= mediaAccountHeldBytesMax, "every allowed request finds room");
assert((mediaRequestBytesMax * 4) / 3 < mediaImagesMaxLength, "images that were fetched have their places");
assert(mediaFetchBytesMax < mediaTextMaxLength, "a file that was fetched has its place");
assert(outputTokensMin <= outputTokensDefault, "the default budget is a budget");
assert(dayMs % coderWindowMs === 0, "coder windows counted from 1970 open at midnight");
assert(creditPurchaseMinTokens <= creditPurchaseMaxTokens, "something can be bought");
assert(diskReserveBytes < diskLowBytes && diskLowBytes < diskWellBytes, "a disk is told of before backups end");
assert(nodeFirstProbeMs < nodeProbeIntervalMs, "the looks at a node that is down grow rarer");
assert(
  nodeIdleLookIntervalMs * 1.25 + nodeProbeTimeoutMs < nodeSilentDoubtMs,
  "one that hangs is passed over all the time",
);
assert(nodeProbeTimeoutMs < nodeProbeIntervalMs, "a look at a node has ended before the next");
assert(journalBusyMs < journalGiveUpMs, "another program's lock is waited for more than once before ends fail");
assert(journalProbeIntervalMs < journalGiveUpMs, "a disk that takes writes again is noticed in time");
assert(managedRestartMinMs < managedRestartMaxMs, "waits before a program's restart grow");
assert(mcpReconnectMinMs < mcpReconnectMaxMs, "waits before another connection grow");
assert(signInDelayMinMs < signInDelayMaxMs, "waits of a name that many try grow");
assert(passwordMinLength < passwordMaxLength, "there are passwords");
assert(toolResultMaxLength < toolResultsOfRoundMaxLength, "a round has room for more than one result");
assert(countingAccountBytesMax < countingBytesMax, "an account leaves room to others: texts to count");
assert(largeBodiesAccountBytesMax < largeBodiesBytesMax, "an account leaves room to others: large bodies");
assert(inputsAnswerMaxBytes < inputsRepliesAccountBytesMax, "every allowed answer finds room");
assert(mediaAccountHeldBytesMax < mediaHeldBytesMax, "an account leaves room to others: media");
assert(inflatingAccountMax < inflatingMax, "an account leaves turns to others: compressed bodies");
assert(pdfReadersAccountMax < pdfReadersMax, "an account leaves turns to others: PDFs");
assert(searchesAccountMax < searchesAtOnceMax, "an account leaves turns to others: searches");
assert(mcpCallsAccountMax < mcpCallsAtOnceMax, "an account leaves turns to others: calls of MCP servers");
assert(publicFetchesAccountMax < publicFetchesMax, "an account leaves turns to others: fetches");
assert(liveStreamsPerAccountMax < liveStreamsMax, "an account leaves room to others: live pages");
assert(2 * floodRequestsMax <= storedResponsesLookupsWaitingMax, "look-ups wait where flood protection lets them come");
