// The statements of a lane's batches and of what gives holds back. Locks are taken in one order everywhere: the lane's row,
// accounts by their numbers, the rest. A named key's row is guarded by its account's lock.
//
// What waits for locks reads nothing else: its snapshot is older than what it waited for. So keys, their use and the time are
// statements of their own, behind it.
import { countNames } from "../../core/count-limits.ts";
import type { Ms } from "../../core/types.ts";
import { bulk, bulkOf, unnest } from "./bulk.ts";
import { type Call, call, type Statement } from "./connection.ts";
import { idleInTransactionMs, lockTimeoutMs } from "./limits.ts";

const statement = (name: string, text: string): Statement => ({ name, text: text.trim(), isPrepared: true });

export const begin = statement("begin", "BEGIN");
export const commit = statement("commit", "COMMIT");
export const rollback = statement("rollback", "ROLLBACK");

/**
 * Who stands still in a transaction is cut off by the server, so that others wait for its locks no longer than that. And its
 * statements are planned once: left alone, the server compares what the first five of them cost, and where those had few
 * rows plans each of the later ones anew, for 0.1 to 0.7 ms a statement. All find their rows by keys: a plan that was made
 * while `holds` was empty would read the whole table for each batch.
 */
const setUp = statement(
  "set up",
  `SELECT set_config('idle_in_transaction_session_timeout', $1::text, true), set_config('lock_timeout', $2::text, true),
     set_config('plan_cache_mode', 'force_generic_plan', true), set_config('enable_seqscan', 'off', true)`,
);
export const setUpFor = (lockMs: Ms = lockTimeoutMs, idleMs: Ms = idleInTransactionMs): Call =>
  call(setUp, idleMs, lockMs);

export const clock = statement("clock", "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now");

// ---------------------------------------------------------------- lanes

/** None where the books are closed, since they are being moved: who closes them waits for this, and sees the lane. */
export const registerLane = statement(
  "register lane",
  `INSERT INTO lanes (id, gateway, batch, seen_at, version, config_digest)
   SELECT $1::text, $2::text, 0, clock_timestamp(), $3::text, $4::text FROM ledger_meta
   WHERE ledger_meta.id = 1 AND NOT closed AND oldest_program <= $5::text::integer FOR SHARE RETURNING 1 AS registered`,
);

/** Facts about the tables, independent of their creator. */
export const readMeta = statement("read meta", "SELECT schema, oldest_program, closed FROM ledger_meta WHERE id = 1");

export const writeConfigDigest = statement(
  "write config digest",
  "UPDATE lanes SET config_digest = $2::text WHERE id = $1::text",
);

/** The lane's fence, heartbeat and number in one. */
export const takeLane = statement(
  "take lane",
  `UPDATE lanes SET batch = $2::text::bigint, seen_at = clock_timestamp()
   WHERE id = $1::text AND batch = $2::text::bigint - 1 AND gone_at IS NULL RETURNING 1 AS taken`,
);

export const readLane = statement(
  "read lane",
  "SELECT batch::float8 AS batch, gone_at IS NOT NULL AS gone FROM lanes WHERE id = $1::text",
);

/** A write, so that its commit is acknowledged: a row can be seen that no standby has yet. */
export const touchLane = statement(
  "touch lane",
  "UPDATE lanes SET seen_at = clock_timestamp() WHERE id = $1::text AND gone_at IS NULL",
);

export const lookAtLanes = statement(
  "look at lanes",
  "SELECT id, batch::text || ' ' || seen_at::text AS mark FROM lanes WHERE gone_at IS NULL",
);

export const markGone = statement(
  "mark gone",
  `UPDATE lanes SET gone_at = clock_timestamp()
   WHERE id = $1::text AND gone_at IS NULL AND batch::text || ' ' || seen_at::text = $2::text RETURNING 1 AS marked`,
);

/** At its own end, when it holds nothing. */
export const leaveLane = statement(
  "leave lane",
  "UPDATE lanes SET gone_at = clock_timestamp() WHERE id = $1::text AND gone_at IS NULL",
);

export const forgetLanes = statement(
  "forget lanes",
  `DELETE FROM lanes WHERE gone_at < clock_timestamp() - $1::text::bigint * interval '1 millisecond'
     AND NOT EXISTS (SELECT 1 FROM holds WHERE lane = lanes.id)`,
);

// ---------------------------------------------------------------- a batch's reads

const limitsOf = `expires_at::float8 AS expires_at, tokens_per_day::float8 AS tokens_per_day,
  tokens_per_month::float8 AS tokens_per_month, models, addresses, forwards_users,
  end_user_tokens_per_day::float8 AS end_user_tokens_per_day, priority, priority_max, api_keys.cost_center,
  member_id::float8 AS member_id,
  ${countNames.map(([name]) => `${name}::float8 AS ${name}`).join(", ")}`;
const sumsOf = "held::float8 AS held, waiting_held::float8 AS waiting_held, begun, expected::float8 AS expected";

export const lockAccounts = statement(
  "lock accounts",
  `SELECT id::float8 AS id, encode(key_hash, 'base64') AS key_hash, plan, credit::float8 AS credit,
     disabled_at IS NOT NULL AS disabled, minute, key_used_at::float8 AS key_used_at, cost_center, ${sumsOf}, holds, searches_held,
     allowance_day, allowance_used::float8 AS allowance_used, coder_window, coder_used::float8 AS coder_used,
     searches_day, searches_used::float8 AS searches_used, flood_opens::float8 AS flood_opens,
     flood_latest::float8 AS flood_latest, flood_count, inputs_opens::float8 AS inputs_opens,
     inputs_latest::float8 AS inputs_latest, inputs_count
   FROM accounts WHERE id = ANY($1::text::bigint[]) ORDER BY accounts.id FOR UPDATE`,
);

/** Whether others have it locked, at once. */
export const tryAccount = statement(
  "try account",
  "SELECT 1 FROM accounts WHERE id = $1::text::bigint FOR UPDATE NOWAIT",
);

/** Waits for what a batch needs beside accounts' rows: who wants to know whom it waits for asks this. It changes nothing. */
export const waitForTables = statement(
  "wait for tables",
  `WITH ${[
    "accounts",
    "api_keys",
    "holds",
    "journal",
    "key_use",
    "quota_use",
    "end_users",
    "end_user_use",
    "end_user_minutes",
    "search_calls",
  ]
    .map((table) => `${table}_free AS (DELETE FROM ${table} WHERE false)`)
    .join(", ")} SELECT 1`,
);
export const lockKeys = statement(
  "lock keys",
  "SELECT 1 FROM api_keys WHERE account_id = $1::text::bigint ORDER BY id FOR UPDATE",
);

export const backendId = statement("backend id", "SELECT pg_backend_pid() AS pid");

/** Who holds what a session waits for: not those that wait for it as well. A prepared transaction has no process. */
export const whoBlocks = statement(
  "who blocks",
  `WITH RECURSIVE blocking (pid) AS (
     SELECT unnest(pg_blocking_pids($1::text::int))
     UNION SELECT behind.pid FROM blocking, unnest(pg_blocking_pids(blocking.pid)) AS behind (pid))
   SELECT blocking.pid, application_name AS application,
     floor(extract(epoch FROM clock_timestamp() - xact_start) * 1000)::float8 AS "forMs"
   FROM blocking LEFT JOIN pg_stat_activity AS session ON session.pid = blocking.pid
   WHERE cardinality(pg_blocking_pids(blocking.pid)) = 0`,
);

/** Those that have been open for longer than batches take. */
export const otherTransactions = statement(
  "other transactions",
  `SELECT pid, application_name AS application,
     floor(extract(epoch FROM clock_timestamp() - xact_start) * 1000)::float8 AS "forMs"
   FROM pg_stat_activity WHERE xact_start < clock_timestamp() - interval '1 second'
     AND pid IN (SELECT pid FROM pg_locks WHERE locktype = 'relation' AND pid <> pg_backend_pid()
       AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))
   ORDER BY xact_start LIMIT 5`,
);

export const readKeys = statement(
  "read keys",
  `SELECT account_id::float8 AS account, id, name, encode(key_hash, 'base64') AS key_hash, used_at::float8 AS used_at,
     revoked_at IS NOT NULL AS revoked, minute, ${limitsOf}, ${sumsOf}
   FROM api_keys WHERE (account_id, id) IN (SELECT * FROM ${unnest(["bigint", "int"])})`,
);

/** Of keys whose use is limited, from a day on. */
export const readKeyUse = statement(
  "read key use",
  `SELECT key_use.account_id::float8 AS account, key_id AS key, day, used::float8 AS used FROM key_use
   JOIN api_keys ON api_keys.account_id = key_use.account_id AND api_keys.id = key_id
   WHERE (key_use.account_id, key_id) IN (SELECT * FROM ${unnest(["bigint", "int"])}) AND day >= $3::text::int
     AND (tokens_per_day IS NOT NULL OR tokens_per_month IS NOT NULL)`,
);

const members = `(SELECT * FROM ${unnest(["bigint", "bigint"])})`;

export const readMembers = statement(
  "read members",
  `SELECT team_id::float8 AS account, account_id::float8 AS member, tokens_per_day::float8 AS "tokensPerDay",
     tokens_per_month::float8 AS "tokensPerMonth"
   FROM team_members WHERE (team_id, account_id) IN ${members}`,
);

/** From a day on, of all keys that they have or had. */
export const readMemberUse = statement(
  "read members' use",
  `SELECT k.account_id::float8 AS account, member_id::float8 AS member, day, sum(used)::float8 AS used
   FROM api_keys AS k JOIN key_use ON key_use.account_id = k.account_id AND key_id = k.id
   WHERE (k.account_id, member_id) IN ${members} AND day >= $3::text::int GROUP BY k.account_id, member_id, day`,
);

/** Of periods that accounts come to: nearly always none. */
export const readUse = statement(
  "read use",
  `SELECT account_id::float8 AS account, quota, period, used::float8 AS used FROM quota_use
   WHERE (account_id, quota, period) IN (SELECT * FROM ${unnest(["bigint", "text", "int"])})`,
);

/** Calls of the search service, from a day on. */
export const readSearchCalls = statement(
  "read search calls",
  `SELECT account_id::float8 AS account, day, calls FROM search_calls
   WHERE account_id = ANY($1::text::bigint[]) AND day >= $2::text::int`,
);

const named = `(SELECT * FROM ${unnest(["bigint", "int", "text"])})`;

export const readEndUsers = statement(
  "read end users",
  `SELECT account_id::float8 AS account, key_id AS key, name, id, last_day FROM end_users
   WHERE (account_id, key_id, name) IN ${named}`,
);

const sumsOfHolds = `sum(tokens)::float8 AS held,
     sum(CASE WHEN waits THEN tokens ELSE 0 END)::float8 AS waiting_held,
     sum(CASE WHEN cost > 0 AND NOT waits THEN 1 ELSE 0 END)::float8 AS begun,
     sum(CASE WHEN waits THEN 0 ELSE cost END)::float8 AS expected`;

/** What members' open requests hold, of all gateways. */
export const readMemberHolds = statement(
  "read members' holds",
  `SELECT k.account_id::float8 AS account, member_id::float8 AS member, ${sumsOfHolds}
   FROM api_keys AS k JOIN holds ON holds.account_id = k.account_id AND key_id = k.id
   WHERE (k.account_id, member_id) IN ${members} AND searches = 0 GROUP BY k.account_id, member_id`,
);

/** What their open requests hold, of all gateways. */
export const readEndUserHolds = statement(
  "read end users' holds",
  `SELECT account_id::float8 AS account, key_id AS key, end_user AS name, ${sumsOfHolds},
     sum(CASE WHEN waits THEN 0 ELSE 1 END)::float8 AS running
   FROM holds WHERE end_user IS NOT NULL AND (account_id, key_id, end_user) IN ${named}
   GROUP BY account_id, key_id, end_user`,
);

/** Of all gateways. */
export const readRunning = statement(
  "read running",
  `SELECT account_id::float8 AS account, key_id AS key, count(*)::int AS running FROM holds
   WHERE account_id = ANY($1::text::bigint[]) AND NOT waits AND searches = 0 GROUP BY account_id, key_id`,
);

/** What they used of the limits of a minute. The last parameter: their names' hashes. */
export const readEndUserMinutes = statement(
  "read end users' minutes",
  `SELECT u.account::float8 AS account, u.key, u.name, minute
   FROM ${unnest(["bigint", "int", "text", "text"])} AS u (account, key, name, hash)
   JOIN end_user_minutes ON account_id = u.account AND key_id = u.key AND name_hash = u.hash`,
);

/** From a day on. */
export const readEndUserUse = statement(
  "read end users' use",
  `SELECT end_users.account_id::float8 AS account, key_id AS key, name, day, used::float8 AS used
   FROM end_users JOIN end_user_use ON end_user_use.account_id = end_users.account_id AND end_user_id = id
   WHERE (end_users.account_id, key_id, name) IN ${named} AND day >= $4::text::int`,
);

/** How many came new on a day or later, and the last number. */
export const countEndUsers = statement(
  "count end users",
  `SELECT u.account::float8 AS account,
     (SELECT count(*)::int FROM end_users WHERE account_id = u.account AND first_day >= $2::text::int) AS since,
     (SELECT coalesce(max(id), 0) FROM end_users WHERE account_id = u.account) AS last_id
   FROM ${unnest(["bigint"])} AS u (account)`,
);

// ---------------------------------------------------------------- a batch's writes

export const insertLines = bulkOf("insert lines", "insert", "journal");

export const insertHolds = bulk("insert holds", {
  verb: "insert",
  table: "holds",
  key: ["request_id"],
  shared: { lane: "text", made_at: "bigint" },
  columns: {
    request_id: "text",
    account_id: "bigint",
    key_id: "int",
    tokens: "bigint",
    cost: "bigint",
    waits: "boolean",
    searches: "int",
    end_user: "text",
  },
});

export const updateHolds = bulk("update holds", {
  verb: "update",
  table: "holds",
  key: ["request_id"],
  columns: { request_id: "text", tokens: "bigint", cost: "bigint", waits: "boolean" },
});

export const deleteHolds = bulk("delete holds", {
  verb: "delete",
  table: "holds",
  key: ["request_id"],
  columns: { request_id: "text" },
});

const heldSums = { held: "bigint", waiting_held: "bigint", begun: "int", expected: "bigint" } as const;

export const updateAccounts = bulk("update accounts", {
  verb: "update",
  table: "accounts",
  key: ["id"],
  columns: {
    id: "bigint",
    credit: "bigint",
    key_used_at: "bigint",
    minute: "text",
    ...heldSums,
    holds: "int",
    searches_held: "int",
    allowance_day: "int",
    allowance_used: "bigint",
    coder_window: "int",
    coder_used: "bigint",
    searches_day: "int",
    searches_used: "bigint",
    flood_opens: "bigint",
    flood_latest: "bigint",
    flood_count: "int",
    inputs_opens: "bigint",
    inputs_latest: "bigint",
    inputs_count: "int",
  },
});

export const updateKeys = bulk("update keys", {
  verb: "update",
  table: "api_keys",
  key: ["account_id", "id"],
  columns: { account_id: "bigint", id: "int", used_at: "bigint", minute: "text", ...heldSums },
});

export const addKeyUse = bulkOf("add key use", "add", "key_use", ["used"]);
export const setEndUsers = bulkOf("set end users", "set", "end_users", ["last_day"]);
export const addEndUserUse = bulkOf("add end users' use", "add", "end_user_use", ["used"]);
export const setEndUserMinutes = bulk("set end users' minutes", {
  verb: "set",
  table: "end_user_minutes",
  key: ["account_id", "key_id", "name_hash"],
  changed: ["minute", "latest"],
  columns: { account_id: "bigint", key_id: "int", name_hash: "text", minute: "text", latest: "bigint" },
});
export const setSearchCalls = bulkOf("set search calls", "set", "search_calls", ["calls"]);
/** What was used in periods that accounts leave. */
export const keepUse = bulkOf("keep use", "set", "quota_use", ["used"]);

// ---------------------------------------------------------------- giving holds back

/** Of a lane: all of them ($2 null), or some. */
const given = "lane = $1::text AND ($2::text IS NULL OR request_id = ANY($2::text::text[]))";

export const lockHolders = statement(
  "lock holders",
  `SELECT 1 FROM accounts WHERE id IN (SELECT account_id FROM holds WHERE ${given}) ORDER BY accounts.id FOR UPDATE`,
);

const subtracted = (of: string): string =>
  ["held", "waiting_held", "begun", "expected"].map((column) => `${column} = ${of}.${column} - s.${column}`).join(", ");
const summed = `sum(tokens) AS held, sum(CASE WHEN waits THEN tokens ELSE 0 END) AS waiting_held,
  sum(CASE WHEN cost > 0 AND NOT waits THEN 1 ELSE 0 END) AS begun,
  sum(CASE WHEN waits THEN 0 ELSE cost END) AS expected, sum(1 - searches) AS holds, sum(searches) AS searches`;

export const giveBack = statement(
  "give back",
  `WITH gone AS (DELETE FROM holds WHERE ${given} RETURNING *),
   account_sums AS (SELECT account_id, ${summed} FROM gone GROUP BY account_id),
   key_sums AS (SELECT account_id, key_id, ${summed} FROM gone GROUP BY account_id, key_id),
   subtracted_accounts AS (
     UPDATE accounts SET ${subtracted("accounts")}, holds = accounts.holds - s.holds,
       searches_held = accounts.searches_held - s.searches FROM account_sums s WHERE accounts.id = s.account_id),
   subtracted_keys AS (
     UPDATE api_keys SET ${subtracted("api_keys")} FROM key_sums s WHERE api_keys.account_id = s.account_id AND id = s.key_id
       AND (tokens_per_day IS NOT NULL OR tokens_per_month IS NOT NULL))
   SELECT count(*)::int AS holds FROM gone`,
);

/** Of lanes that are gone: those of accounts that were locked when the others were given back. */
export const readLeftHolds = statement(
  "read left holds",
  `SELECT lane, account_id::float8 AS account, request_id AS request FROM holds
   WHERE NOT EXISTS (SELECT 1 FROM lanes WHERE id = lane AND gone_at IS NULL) ORDER BY lane, account_id LIMIT 10000`,
);

export const readHolds = statement("read holds", "SELECT request_id FROM holds WHERE lane = $1::text");

// ---------------------------------------------------------------- keys

/** Whose key it is: the account's first, or a named one. */
export const findKey = statement(
  "find key",
  `SELECT accounts.id::float8 AS account, plan, 1 AS key, NULL AS name, ${limitsOf}
   FROM accounts LEFT JOIN api_keys ON false WHERE accounts.key_hash = decode($1::text, 'base64') AND disabled_at IS NULL
   UNION ALL
   SELECT accounts.id::float8, plan, api_keys.id, name, ${limitsOf}
   FROM api_keys JOIN accounts ON accounts.id = account_id
   WHERE api_keys.key_hash = decode($1::text, 'base64') AND revoked_at IS NULL AND disabled_at IS NULL`,
);

export const findPlan = statement(
  "find plan",
  "SELECT plan FROM accounts WHERE id = $1::text::bigint AND disabled_at IS NULL",
);

// ---------------------------------------------------------------- shares of nodes

const ofLivingLanes = "lane IN (SELECT id FROM lanes WHERE gone_at IS NULL)";

/** A row for each node, whose lock guards its shares. */
export const makeNodes = statement(
  "make nodes",
  `INSERT INTO node_shares (node, lane) SELECT node, '' FROM ${unnest(["text"])} AS u(node) ON CONFLICT DO NOTHING`,
);

export const lockNodes = statement(
  "lock nodes",
  "SELECT node FROM node_shares WHERE node = ANY($1::text::text[]) AND lane = '' ORDER BY node FOR UPDATE",
);

/** Of lanes that live; those of others count no more. */
export const readShares = statement(
  "read shares",
  `SELECT node, lane, granted, busy, waiting, accounts, waited_ms FROM node_shares
   WHERE node = ANY($1::text::text[]) AND ${ofLivingLanes} ORDER BY node, lane`,
);

export const writeShares = statement(
  "write shares",
  `INSERT INTO node_shares (node, lane, granted, busy, waiting, accounts, waited_ms)
   SELECT node, $1::text, granted, busy, waiting, accounts, waited_ms
   FROM ${unnest(["text", "int", "int", "int", "int", "int"], 2)} AS u(node, granted, busy, waiting, accounts, waited_ms)
   ON CONFLICT (node, lane) DO UPDATE SET granted = excluded.granted, busy = excluded.busy, waiting = excluded.waiting,
     accounts = excluded.accounts, waited_ms = excluded.waited_ms`,
);

/** Those of a lane, but for some nodes. */
export const leaveNodes = statement(
  "leave nodes",
  "DELETE FROM node_shares WHERE lane = $1::text AND node <> ALL($2::text::text[])",
);

/** Those of lanes that are gone. */
export const forgetShares = statement(
  "forget shares",
  `DELETE FROM node_shares WHERE lane <> '' AND NOT ${ofLivingLanes}`,
);

export const writeWork = statement(
  "write work",
  "INSERT INTO served_work (lane, number, at, work) VALUES ($1::text, $2::int, clock_timestamp(), $3::text)",
);

/** Of other lanes, in their order. */
export const readWork = statement(
  "read work",
  `SELECT lane, number, work FROM served_work
   WHERE lane <> $1::text AND at > clock_timestamp() - interval '5 seconds' ORDER BY lane, number`,
);

/** Old ones of a lane, and those that a lane left behind. */
export const forgetWork = statement(
  "forget work",
  `DELETE FROM served_work WHERE at < clock_timestamp() - interval '10 seconds'
   AND (lane = $1::text OR at < clock_timestamp() - interval '1 minute')`,
);
