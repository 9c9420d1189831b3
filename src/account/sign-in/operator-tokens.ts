// Tokens of the operators' API: named, with a scope and perhaps an expiry. A token is 256 random bits, and only their hash is
// kept. In a unit of the office.
import type { Ms } from "../../core/types.ts";
import { AccountError } from "../people/accounts.ts";
import type { Draft } from "../draft.ts";
import type { OperatorToken, OfficeRecords, TokenScope } from "../records.ts";

/** The marks of a token of ours; leaks are found by them. */
const prefix = "tgo-";
const tokenBytes = 32;
/** Tokens that are kept, those that are void too. */
const operatorTokensMax = 1_000;

type Parts = Readonly<{ records: OfficeRecords; draft: Draft; now: Ms }>;

export class OperatorTokens {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** A new token, which is shown this once. Throws AccountError for a name that another one has. */
  async create(
    name: string,
    scope: TokenScope,
    expiresAt: Ms | null,
  ): Promise<Readonly<{ id: number; token: string }>> {
    const { records, draft, now } = this.#parts;
    const known = await this.list();
    if (known.length >= operatorTokensMax) throw new AccountError(`there are ${operatorTokensMax} tokens already`);
    if (known.some((one) => one.name === name && one.revokedAt === null)) {
      throw new AccountError(`a token with the name ${JSON.stringify(name)} exists already`);
    }
    const bits = crypto.getRandomValues(new Uint8Array(tokenBytes));
    const token = prefix + bits.toBase64({ alphabet: "base64url", omitPadding: true });
    const id = await records.next("operator_tokens");
    const made: OperatorToken = {
      id,
      name,
      tokenHash: hashOf(token),
      scope,
      createdAt: now,
      expiresAt,
      revokedAt: null,
    };
    draft.changes.push({ change: "operator_token", token: made });
    return { id, token };
  }

  /** Newest first. */
  async list(): Promise<readonly OperatorToken[]> {
    return this.#parts.records.operatorTokens(operatorTokensMax);
  }

  /** Void at once. Throws AccountError where no token that is not revoked has the number. */
  async revoke(id: number): Promise<OperatorToken> {
    const token = (await this.list()).find((one) => one.id === id && one.revokedAt === null);
    if (token === undefined) throw new AccountError(`there is no token ${id}, or it is revoked`);
    const { draft, now } = this.#parts;
    draft.changes.push({ change: "revoke_operator_token", id, at: now });
    return token;
  }

  /** Any string is safe. Null: it is none, or not valid now. */
  async find(token: string): Promise<OperatorToken | null> {
    if (!isToken(token)) return null;
    const found = await this.#parts.records.operatorToken(hashOf(token));
    const isValid = found?.revokedAt === null && (found.expiresAt === null || this.#parts.now < found.expiresAt);
    return isValid ? found : null;
  }
}

const isToken = (token: string): boolean => token.startsWith(prefix) && /^[A-Za-z0-9_-]{47}$/.test(token);

const hashOf = (token: string): string => new Bun.CryptoHasher("sha256").update(token).digest("base64");
