// The ledgers that released programs left behind: each text takes a database one version further, as the program of that
// version did. Tests make old ledgers with them. A text is never edited; a new version of `schema.ts` adds one.

export const releasedLedgers: readonly string[] = [
  `
  CREATE TABLE accounts (
    id INTEGER PRIMARY KEY,
    email TEXT NOT NULL UNIQUE COLLATE NOCASE,
    plan TEXT NOT NULL,
    credit INTEGER NOT NULL,
    key_hash BLOB NOT NULL UNIQUE CHECK (length(key_hash) = 32),
    password_hash TEXT,
    operator INTEGER NOT NULL CHECK (operator IN (0, 1)),
    created_at INTEGER NOT NULL,
    key_created_at INTEGER NOT NULL
  ) STRICT;

  CREATE TABLE quota_use (
    account_id INTEGER NOT NULL,
    quota TEXT NOT NULL CHECK (quota IN ('allowance', 'coder_calls', 'searches')),
    period INTEGER NOT NULL,
    used INTEGER NOT NULL,
    PRIMARY KEY (account_id, quota, period)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE journal (
    sequence INTEGER PRIMARY KEY,
    billing_key TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL CHECK (kind IN ('charge', 'coder_call', 'coder_usage', 'search', 'credit')),
    account_id INTEGER NOT NULL,
    at INTEGER NOT NULL,
    period INTEGER NOT NULL,
    used INTEGER NOT NULL,
    credit_delta INTEGER NOT NULL,
    endpoint TEXT,
    model TEXT,
    input_fresh INTEGER,
    input_cached INTEGER,
    output INTEGER,
    reasoning INTEGER,
    input_cents INTEGER,
    cached_input_cents INTEGER,
    output_cents INTEGER,
    billed_tokens INTEGER,
    estimated INTEGER CHECK (estimated IN (0, 1))
  ) STRICT;

  CREATE INDEX journal_by_account ON journal (account_id, sequence);

  -- Raised at every start. The writer looks at it in every transaction, so that a second instance which got past the
  -- lock (a deleted lock file, a network file system) stops the first one instead of mixing two ledgers.
  CREATE TABLE instance (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    epoch INTEGER NOT NULL
  ) STRICT;

  INSERT INTO instance (id, epoch) VALUES (1, 0);
  `,
  // The console: sessions, requests for credit or another plan, payments, and what operators did.
  `
  ALTER TABLE accounts ADD COLUMN disabled_at INTEGER;

  CREATE TABLE sessions (
    id INTEGER PRIMARY KEY,
    token_hash BLOB NOT NULL UNIQUE CHECK (length(token_hash) = 32),
    account_id INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    used_at INTEGER NOT NULL,
    address TEXT NOT NULL,
    browser TEXT NOT NULL
  ) STRICT;

  CREATE INDEX sessions_by_account ON sessions (account_id);

  CREATE TABLE purchase_requests (
    id INTEGER PRIMARY KEY,
    account_id INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('credit', 'plan')),
    tokens INTEGER,
    plan TEXT,
    note TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'approved', 'declined', 'withdrawn')),
    created_at INTEGER NOT NULL,
    decided_at INTEGER,
    decision_note TEXT NOT NULL DEFAULT ''
  ) STRICT;

  CREATE INDEX purchase_requests_by_account ON purchase_requests (account_id, id);
  CREATE INDEX purchase_requests_by_state ON purchase_requests (state, id);

  -- What a payment provider was paid; the credit itself is a line of the journal, in the same commit.
  CREATE TABLE payments (
    id TEXT PRIMARY KEY,
    account_id INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    paid_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;

  CREATE INDEX payments_by_account ON payments (account_id, paid_at);

  CREATE TABLE audit_log (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    operator_id INTEGER NOT NULL,
    address TEXT NOT NULL,
    action TEXT NOT NULL,
    subject_id INTEGER NOT NULL,
    detail TEXT NOT NULL
  ) STRICT;
  `,
  // Retention: lines of the journal that are older than they are kept.
  `
  -- What those lines said, summed up by day; lines and sums together are what balances are the sums of. Purchases are
  -- never folded: their references must be known for ever.
  CREATE TABLE journal_folds (
    account_id INTEGER NOT NULL,
    day INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('charge', 'coder_call', 'coder_usage', 'search')),
    period INTEGER NOT NULL,
    -- Empty where the lines are about no reply.
    model TEXT NOT NULL,
    endpoint TEXT NOT NULL,
    lines INTEGER NOT NULL,
    used INTEGER NOT NULL,
    credit_delta INTEGER NOT NULL,
    input_fresh INTEGER NOT NULL,
    input_cached INTEGER NOT NULL,
    output INTEGER NOT NULL,
    reasoning INTEGER NOT NULL,
    billed_tokens INTEGER NOT NULL,
    PRIMARY KEY (account_id, day, kind, period, model, endpoint)
  ) STRICT, WITHOUT ROWID;

  -- All lines up to this one are folded, but for purchases. What it was: at 0, nothing is folded.
  CREATE TABLE journal_folded (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    sequence INTEGER NOT NULL,
    billing_key TEXT NOT NULL,
    at INTEGER NOT NULL
  ) STRICT;

  INSERT INTO journal_folded (id, sequence, billing_key, at) VALUES (1, 0, '', 0);
  `,
  // Calls of the search service, which the operator pays for, found or not: a bound of its own, and no part of the ledger.
  `
  CREATE TABLE search_calls (
    account_id INTEGER NOT NULL,
    day INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    PRIMARY KEY (account_id, day)
  ) STRICT, WITHOUT ROWID;
  `,
  // Prices of fractions of a cent: ten-thousandths, beside the whole cents of older and of most lines.
  `
  ALTER TABLE journal ADD COLUMN input_parts INTEGER;
  ALTER TABLE journal ADD COLUMN cached_input_parts INTEGER;
  ALTER TABLE journal ADD COLUMN output_parts INTEGER;
  `,
  // Named keys, and by which key each line was asked for.
  `
  ALTER TABLE accounts ADD COLUMN key_used_at INTEGER;
  ALTER TABLE journal ADD COLUMN key_id INTEGER NOT NULL DEFAULT 1;

  CREATE TABLE api_keys (
    account_id INTEGER NOT NULL,
    id INTEGER NOT NULL,
    name TEXT NOT NULL,
    key_hash BLOB UNIQUE,
    created_at INTEGER NOT NULL,
    used_at INTEGER,
    revoked_at INTEGER,
    expires_at INTEGER,
    tokens_per_day INTEGER,
    tokens_per_month INTEGER,
    models TEXT,
    addresses TEXT,
    PRIMARY KEY (account_id, id),
    CHECK (length(key_hash) = 32)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE key_use (
    account_id INTEGER NOT NULL,
    key_id INTEGER NOT NULL,
    day INTEGER NOT NULL,
    used INTEGER NOT NULL,
    PRIMARY KEY (account_id, key_id, day)
  ) STRICT, WITHOUT ROWID;

  -- The key is part of what sums are told apart by.
  ALTER TABLE journal_folds RENAME TO journal_folds_before;
  CREATE TABLE journal_folds (
    account_id INTEGER NOT NULL,
    day INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('charge', 'coder_call', 'coder_usage', 'search')),
    period INTEGER NOT NULL,
    model TEXT NOT NULL,
    endpoint TEXT NOT NULL,
    lines INTEGER NOT NULL,
    used INTEGER NOT NULL,
    credit_delta INTEGER NOT NULL,
    input_fresh INTEGER NOT NULL,
    input_cached INTEGER NOT NULL,
    output INTEGER NOT NULL,
    reasoning INTEGER NOT NULL,
    billed_tokens INTEGER NOT NULL,
    key_id INTEGER NOT NULL DEFAULT 1,
    PRIMARY KEY (account_id, day, kind, period, model, endpoint, key_id)
  ) STRICT, WITHOUT ROWID;
  INSERT INTO journal_folds SELECT *, 1 FROM journal_folds_before;
  DROP TABLE journal_folds_before;
  `,
  // Links that let somebody in once, and who is known to an identity provider.
  `
  CREATE TABLE access_links (
    id INTEGER PRIMARY KEY,
    token_hash BLOB NOT NULL UNIQUE CHECK (length(token_hash) = 32),
    kind TEXT NOT NULL CHECK (kind IN ('invitation', 'password')),
    account_id INTEGER,
    email TEXT COLLATE NOCASE,
    plan TEXT NOT NULL,
    credit INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    used_at INTEGER
  ) STRICT;

  CREATE INDEX access_links_by_account ON access_links (account_id);

  CREATE TABLE identities (
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL,
    account_id INTEGER NOT NULL,
    connected_at INTEGER NOT NULL,
    PRIMARY KEY (issuer, subject)
  ) STRICT, WITHOUT ROWID;

  CREATE INDEX identities_by_account ON identities (account_id);
  `,
  // Keys that may say for whom they ask, those people, and what they used.
  `
  ALTER TABLE api_keys ADD COLUMN forwards_users INTEGER;
  ALTER TABLE api_keys ADD COLUMN end_user_tokens_per_day INTEGER;
  ALTER TABLE journal ADD COLUMN end_user_id INTEGER;

  CREATE TABLE end_users (
    account_id INTEGER NOT NULL,
    id INTEGER NOT NULL,
    key_id INTEGER NOT NULL,
    name TEXT,
    first_day INTEGER NOT NULL,
    last_day INTEGER NOT NULL,
    PRIMARY KEY (account_id, id)
  ) STRICT, WITHOUT ROWID;

  CREATE INDEX end_users_by_name ON end_users (account_id, name, key_id);
  CREATE INDEX end_users_by_first_day ON end_users (account_id, first_day);
  CREATE INDEX end_users_by_last_day ON end_users (last_day);

  CREATE TABLE end_user_use (
    account_id INTEGER NOT NULL,
    end_user_id INTEGER NOT NULL,
    day INTEGER NOT NULL,
    used INTEGER NOT NULL,
    PRIMARY KEY (account_id, end_user_id, day)
  ) STRICT, WITHOUT ROWID;

  CREATE INDEX end_user_use_by_day ON end_user_use (day);
  `,
  // How requests went, for the request log.
  `
  ALTER TABLE journal ADD COLUMN node TEXT;
  ALTER TABLE journal ADD COLUMN wait_ms INTEGER;
  ALTER TABLE journal ADD COLUMN sent_ms INTEGER;
  ALTER TABLE journal ADD COLUMN first_token_ms INTEGER;
  ALTER TABLE journal ADD COLUMN duration_ms INTEGER;
  `,
  // Keys' last four characters, and requests of accounts to be deleted.
  `
  ALTER TABLE accounts ADD COLUMN key_ending TEXT;
  ALTER TABLE api_keys ADD COLUMN key_ending TEXT;

  ALTER TABLE purchase_requests RENAME TO purchase_requests_before;
  CREATE TABLE purchase_requests (
    id INTEGER PRIMARY KEY,
    account_id INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('credit', 'plan', 'deletion')),
    tokens INTEGER,
    plan TEXT,
    note TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'approved', 'declined', 'withdrawn')),
    created_at INTEGER NOT NULL,
    decided_at INTEGER,
    decision_note TEXT NOT NULL DEFAULT ''
  ) STRICT;
  INSERT INTO purchase_requests SELECT * FROM purchase_requests_before;
  DROP TABLE purchase_requests_before;
  CREATE INDEX purchase_requests_by_account ON purchase_requests (account_id, id);
  CREATE INDEX purchase_requests_by_state ON purchase_requests (state, id);
  `,
  // Tokens of the operators' API.
  `
  CREATE TABLE operator_tokens (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    token_hash BLOB NOT NULL UNIQUE CHECK (length(token_hash) = 32),
    scope TEXT NOT NULL CHECK (scope IN ('read', 'people', 'all')),
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER
  ) STRICT;
  `,
  // Keys' shares, priorities and limits of requests.
  `
  ALTER TABLE api_keys ADD COLUMN weight INTEGER;
  ALTER TABLE api_keys ADD COLUMN priority TEXT;
  ALTER TABLE api_keys ADD COLUMN priority_max TEXT;
  ALTER TABLE api_keys ADD COLUMN parallel INTEGER;
  ALTER TABLE api_keys ADD COLUMN requests_per_minute INTEGER;
  ALTER TABLE api_keys ADD COLUMN tokens_per_minute INTEGER;
  `,
  // How urgent requests were in line, for simulations.
  `
  ALTER TABLE journal ADD COLUMN priority TEXT;
  `,
  // Keys' limits of each end user.
  `
  ALTER TABLE api_keys ADD COLUMN end_user_parallel INTEGER;
  ALTER TABLE api_keys ADD COLUMN end_user_requests_per_minute INTEGER;
  ALTER TABLE api_keys ADD COLUMN end_user_tokens_per_minute INTEGER;
  `,
  // The model that was asked for, where another one stood in for it.
  `
  ALTER TABLE journal ADD COLUMN asked_model TEXT;
  `,
  // Machines that sign in.
  `
  ALTER TABLE api_keys RENAME TO api_keys_before;
  CREATE TABLE api_keys (
    account_id INTEGER NOT NULL,
    id INTEGER NOT NULL,
    name TEXT NOT NULL,
    key_hash BLOB UNIQUE CHECK (length(key_hash) = 32),
    created_at INTEGER NOT NULL,
    used_at INTEGER,
    revoked_at INTEGER,
    expires_at INTEGER,
    tokens_per_day INTEGER,
    tokens_per_month INTEGER,
    models TEXT,
    addresses TEXT,
    forwards_users INTEGER,
    end_user_tokens_per_day INTEGER,
    key_ending TEXT,
    weight INTEGER,
    priority TEXT,
    priority_max TEXT,
    parallel INTEGER,
    requests_per_minute INTEGER,
    tokens_per_minute INTEGER,
    end_user_parallel INTEGER,
    end_user_requests_per_minute INTEGER,
    end_user_tokens_per_minute INTEGER,
    family_hash BLOB UNIQUE CHECK (length(family_hash) = 32),
    refresh_hash BLOB CHECK (length(refresh_hash) = 32),
    PRIMARY KEY (account_id, id)
  ) STRICT, WITHOUT ROWID;
  INSERT INTO api_keys SELECT *, NULL, NULL FROM api_keys_before;
  DROP TABLE api_keys_before;
  CREATE TABLE device_codes (
    device_hash BLOB PRIMARY KEY NOT NULL CHECK (length(device_hash) = 32),
    user_code_hash BLOB NOT NULL UNIQUE CHECK (length(user_code_hash) = 32),
    program TEXT NOT NULL,
    machine TEXT NOT NULL,
    address TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    denied_at INTEGER
  ) STRICT, WITHOUT ROWID;
  `,
  // Tags of requests, and cost centers.
  `
  ALTER TABLE accounts ADD COLUMN cost_center TEXT;
  ALTER TABLE api_keys ADD COLUMN cost_center TEXT;
  ALTER TABLE journal ADD COLUMN tags TEXT;
  ALTER TABLE journal ADD COLUMN cost_center TEXT;
  CREATE TABLE cost_center_folds (
    account_id INTEGER NOT NULL,
    day INTEGER NOT NULL,
    model TEXT NOT NULL,
    endpoint TEXT NOT NULL,
    key_id INTEGER NOT NULL,
    cost_center TEXT NOT NULL,
    lines INTEGER NOT NULL,
    input_fresh INTEGER NOT NULL,
    input_cached INTEGER NOT NULL,
    output INTEGER NOT NULL,
    billed_tokens INTEGER NOT NULL,
    PRIMARY KEY (account_id, day, model, endpoint, key_id, cost_center)
  ) STRICT, WITHOUT ROWID;
  `,
  // Teams.
  `
  ALTER TABLE accounts ADD COLUMN team INTEGER;
  ALTER TABLE api_keys ADD COLUMN member_id INTEGER;
  CREATE INDEX api_keys_by_member ON api_keys (member_id, account_id);
  CREATE TABLE team_members (
    team_id INTEGER NOT NULL,
    account_id INTEGER NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('admin', 'member')),
    tokens_per_day INTEGER,
    tokens_per_month INTEGER,
    joined_at INTEGER NOT NULL,
    PRIMARY KEY (team_id, account_id)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX team_members_by_account ON team_members (account_id);
  ALTER TABLE access_links ADD COLUMN team_id INTEGER;
  ALTER TABLE access_links ADD COLUMN tokens_per_day INTEGER;
  ALTER TABLE access_links ADD COLUMN tokens_per_month INTEGER;
  `,
  // Mail.
  `
  ALTER TABLE accounts ADD COLUMN mail_address TEXT;
  ALTER TABLE accounts ADD COLUMN language TEXT;
  ALTER TABLE accounts ADD COLUMN mail_kinds TEXT;
  ALTER TABLE accounts ADD COLUMN credit_after_purchase INTEGER;
  ALTER TABLE accounts ADD COLUMN purchased_at INTEGER;
  CREATE TABLE mails (
    once TEXT NOT NULL,
    kind TEXT NOT NULL,
    account_id INTEGER,
    address TEXT,
    details TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    due_at INTEGER,
    tries INTEGER NOT NULL,
    sent_at INTEGER,
    problem TEXT,
    kept_until INTEGER NOT NULL,
    PRIMARY KEY (once)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX mails_by_due ON mails (due_at, problem);
  CREATE INDEX mails_by_account ON mails (account_id);
  CREATE INDEX mails_by_end ON mails (kept_until);
  `,
];
