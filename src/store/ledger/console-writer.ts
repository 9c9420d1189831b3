// Writes the console's part of a batch: sessions, links that let somebody in, identities, requests for credit or another
// plan, payments and the audit log. Each change is made once, however often the batch is tried.
import type { Database } from "bun:sqlite";
import type { ConsoleChange } from "../../account/journal.ts";
import type { AccountId, Ms } from "../../core/types.ts";

export class ConsoleWriter {
  readonly #statements: ReturnType<typeof prepare>;

  constructor(database: Database) {
    this.#statements = prepare(database);
  }

  /** Takes away what tells who the account was; what it paid stays. */
  erase(account: AccountId, email: string, at: Ms): void {
    const { endSessions, eraseNotes, eraseAddresses, eraseDetails, eraseLinks, eraseIdentities } = this.#statements;
    eraseLinks.run(account, email);
    eraseIdentities.run(account);
    endSessions.run(account, 0);
    eraseNotes.run(at, account);
    eraseAddresses.run(account);
    eraseDetails.run(account);
  }

  /** Those by which the account's password could still be set. */
  endPasswordLinks(account: AccountId): void {
    this.#statements.endPasswordLinks.run(account);
  }

  write(change: ConsoleChange): void {
    const statements = this.#statements;
    switch (change.change) {
      case "open_session": {
        const { id, tokenHash, account, createdAt, usedAt, address, browser } = change.session;
        const hash = Uint8Array.fromBase64(tokenHash);
        statements.openSession.run(id, hash, account, createdAt, usedAt, address, browser);
        return;
      }
      case "use_session":
        statements.useSession.run(change.at, change.id);
        return;
      case "end_session":
        statements.endSession.run(change.id);
        return;
      case "end_sessions":
        statements.endSessions.run(change.account, change.except ?? 0);
        return;
      case "purchase_request": {
        const { id, account, kind, tokens, plan, note, state, createdAt } = change.request;
        statements.purchaseRequest.run(id, account, kind, tokens, plan, note, state, createdAt);
        return;
      }
      case "decision":
        statements.decision.run(change.state, change.at, change.note, change.id);
        return;
      case "payment":
        statements.payment.run(change.id, change.account, change.tokens, change.at);
        return;
      case "identity": {
        const { issuer, subject, account, connectedAt } = change.identity;
        statements.leaveIssuer.run(account, issuer);
        statements.identity.run(issuer, subject, connectedAt, account);
        return;
      }
      case "link": {
        const { id, tokenHash, kind, account, email, plan, credit, createdAt, expiresAt } = change.link;
        if (account !== null) statements.endPasswordLinks.run(account);
        statements.forgetLinks.run(change.forgetBefore);
        const hash = Uint8Array.fromBase64(tokenHash);
        statements.link.run(id, hash, kind, account, email, plan, credit, createdAt, expiresAt);
        return;
      }
      case "use_link":
        statements.useLink.run(change.at, change.account, change.id);
        return;
      case "withdraw_link":
        statements.withdrawLink.run(change.id);
        return;
      case "audit": {
        const { id, at, operator, address, action, subject, detail } = change.entry;
        statements.audit.run(id, at, operator, address, action, subject, detail);
        return;
      }
      default:
        change satisfies never;
    }
  }
}

type Text = string | null;

function prepare(database: Database) {
  return {
    eraseNotes: database.prepare<unknown, [number, number]>(`
      UPDATE purchase_requests SET note = '', decision_note = '',
        decided_at = CASE state WHEN 'pending' THEN ? ELSE decided_at END,
        state = CASE WHEN state <> 'pending' THEN state WHEN kind = 'deletion' THEN 'approved' ELSE 'withdrawn' END
      WHERE account_id = ?`),
    eraseAddresses: database.prepare<unknown, [number]>("UPDATE audit_log SET address = '' WHERE operator_id = ?"),
    eraseDetails: database.prepare<unknown, [number]>("UPDATE audit_log SET detail = '' WHERE subject_id = ?"),
    openSession: database.prepare<unknown, [number, Uint8Array, number, number, number, string, string]>(`
      INSERT INTO sessions (id, token_hash, account_id, created_at, used_at, address, browser)
      VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`),
    useSession: database.prepare<unknown, [number, number]>("UPDATE sessions SET used_at = ? WHERE id = ?"),
    endSession: database.prepare<unknown, [number]>("DELETE FROM sessions WHERE id = ?"),
    endSessions: database.prepare<unknown, [number, number]>("DELETE FROM sessions WHERE account_id = ? AND id <> ?"),
    purchaseRequest: database.prepare<unknown, [number, number, string, number | null, Text, string, string, number]>(`
      INSERT INTO purchase_requests (id, account_id, kind, tokens, plan, note, state, created_at)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`),
    decision: database.prepare<unknown, [string, number, string, number]>(`
      UPDATE purchase_requests SET state = ?, decided_at = ?, decision_note = ? WHERE id = ? AND state = 'pending'`),
    payment: database.prepare<unknown, [string, number, number, number]>(`
      INSERT INTO payments (id, account_id, tokens, paid_at) VALUES (?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`),
    eraseLinks: database.prepare<unknown, [number, string]>(
      "DELETE FROM access_links WHERE account_id = ? OR email = ?",
    ),
    eraseIdentities: database.prepare<unknown, [number]>("DELETE FROM identities WHERE account_id = ?"),
    endPasswordLinks: database.prepare<unknown, [number]>(
      "DELETE FROM access_links WHERE account_id = ? AND kind = 'password' AND used_at IS NULL",
    ),
    leaveIssuer: database.prepare<unknown, [number, string]>(
      "DELETE FROM identities WHERE account_id = ? AND issuer = ?",
    ),
    identity: database.prepare<unknown, [string, string, number, number]>(`
      INSERT INTO identities (issuer, subject, connected_at, account_id)
      SELECT ?, ?, ?, id FROM accounts WHERE id = ? ON CONFLICT (issuer, subject) DO NOTHING`),
    forgetLinks: database.prepare<unknown, [number]>(
      "DELETE FROM access_links WHERE coalesce(used_at, expires_at) < ?",
    ),
    link: database.prepare<unknown, [number, Uint8Array, string, number | null, Text, string, number, number, number]>(`
      INSERT INTO access_links (id, token_hash, kind, account_id, email, plan, credit, created_at, expires_at)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`),
    useLink: database.prepare<unknown, [number, number, number]>(
      `UPDATE access_links SET used_at = ?1, account_id = ?2 WHERE id = ?3 AND used_at IS NULL
         AND EXISTS (SELECT 1 FROM accounts WHERE id = ?2)`,
    ),
    withdrawLink: database.prepare<unknown, [number]>("DELETE FROM access_links WHERE id = ? AND used_at IS NULL"),
    audit: database.prepare<unknown, [number, number, number, string, string, number, string]>(`
      INSERT INTO audit_log (id, at, operator_id, address, action, subject_id, detail)
      VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`),
  };
}
