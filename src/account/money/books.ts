// What every request asks of the books, wherever they are: in this process's memory (Admission), rows of a database server
// (PostgresBooks), or the main thread's (MainThreadClient).
import type { Soon } from "../../core/soon.ts";
import type {
  AccountId,
  Expected,
  Hold,
  KeyId,
  Model,
  ModelKind,
  Moment,
  Ms,
  Principal,
  Refusal,
} from "../../core/types.ts";
import type { Asked } from "./asked.ts";

/** Whose key it is; what limits it, the ledger knows. `keyHash`: of the key, where other gateways may have voided it. */
export type Asker = Pick<Principal, "account" | "key" | "keyHash">;

/** A request that wants to begin. `M`: its model, or the model's id on the way between threads. */
export type AdmissionRequest<M = Model> = Readonly<{
  account: AccountId;
  key: KeyId;
  /** As Asker has it; null where no key was brought, by a signed-in browser. */
  keyHash?: string | null | undefined;
  ask: Asked<M>;
  /** What its text is expected to come to. */
  inputTokens: number;
  /** What decides whether it begins beside others. Absent: `inputTokens`, and nothing of an answer. */
  expected?: Expected;
  /** Minted by the gateway, used once. */
  requestId: string;
  /** For whom the key's program says that it asks. Null or absent: it may not say so. */
  endUser?: string | null;
}>;

export interface Books {
  /** Of an account, to models of embeddings and reranking. */
  inputRequestsPerMinute: number;
  /** Those who were admitted and wait for others of their account to settle. */
  readonly line: { maxWaitMs: Ms; readonly length: number };
  /** Counts a malformed request for flood protection; it reserves nothing. `now` is monotonic. */
  countRequest(account: AccountId, now: Ms, kind?: ModelKind): Soon<Refusal | null>;
  /** Refuses, and counts, a request whose window is full already: before anything is done for it that costs time. */
  refuseFlooded(account: AccountId, now: Ms, kind?: ModelKind): Soon<Refusal | null>;
  /** Why the account's plan or the key may not ask the model; null: it may. */
  refuseModel(asker: Asker, model: Model): Soon<Refusal | null>;
  admit(request: AdmissionRequest, now: Moment): Soon<Hold | Refusal>;
}

/** What is asked while a request is served. */
export type RequestBooks = Pick<Books, "countRequest" | "refuseFlooded" | "refuseModel" | "admit">;

export interface BookKeys {
  principal(key: string): Soon<Principal | null>;
  /** Where that may be a second old: as it is now, for what no admission decides. */
  principalNow?(key: string): Soon<Principal | null>;
  ofHash(keyHash: string): Soon<Principal | null>;
  onVoid: () => void;
}
