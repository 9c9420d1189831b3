// What relays and the main thread say to each other. All messages of one turn of the event loop are sent as one JSON
// text: a message costs 3.4 us however short it is, and a structured clone costs the main thread twice as much as text.
//
// A question's `id` is the relay's own number; its answer has the same. A request's hold and its place on a node are
// known by the id of the question that got them.
import type { AdmissionRequest } from "../account/books.ts";
import type { Catalog } from "../core/catalog.ts";
import type { LiveOptions, NodeConfig } from "../config/config.ts";
import type { StoredResponse } from "../dialects/stored-responses.ts";
import type { Engine } from "../nodes/engine.ts";
import type { NodeOutcome } from "../nodes/node-endpoint.ts";
import type { NodeHealth } from "../nodes/queue/slot-queue.ts";
import type { Priority } from "../core/priority.ts";
import type { AccountId, Course, Model, ModelKind, OutputHeld, Principal, Refusal, Usage } from "../core/types.ts";

/** From a relay, carried out in order. */
export type RelayOperation =
  /** Whose key it is. */
  | Readonly<{ op: "principal"; id: number; keyHash: string }>
  /** Counts a request for flood protection that is not admitted; with `ifFull` only where its window is full already. */
  | Readonly<{ op: "count"; id: number; account: AccountId; kind: ModelKind; ifFull: boolean }>
  | (Readonly<{ op: "admit"; id: number }> & AdmissionRequest<string>)
  | Readonly<{ op: "settle"; id: number; hold: number; usage: Usage; estimated: boolean; course?: Course | undefined }>
  /** The answer has so many output tokens. */
  | Readonly<{ op: "grow"; id: number; hold: number; written: number }>
  /** The hold is given back. Not said of one that was to be settled, whatever came of that. */
  | Readonly<{ op: "release"; hold: number }>
  | Readonly<{
      op: "enter";
      id: number;
      account: AccountId;
      member: string;
      priority: Priority;
      model: string;
      /** See packBlocks. */
      prompt: string;
      excluded: readonly string[];
    }>
  /** The first pieces of an answer are there. */
  | Readonly<{ op: "began"; place: number }>
  /** Nobody waits for the place anymore; if it was already granted, it is given back. */
  | Readonly<{ op: "leave"; place: number }>
  /** The place is given back; `outcome` is null where nothing was asked of the node. */
  | Readonly<{ op: "done"; place: number; outcome: NodeOutcome | null }>
  /** With an id where the end of the reply waits for it. */
  | Readonly<{ op: "keep"; id?: number; account: AccountId; response: StoredResponse }>;

/** What the main thread answers to a question. */
export type MainThreadAnswer =
  /** `version`: of all keys, when it was looked up. */
  | Readonly<{ answer: "principal"; id: number; principal: Principal | null; version: number }>
  | Readonly<{ answer: "counted"; id: number; refusal: Refusal | null }>
  /** `waits`: for its count to be on disk, or for others of its account; "ready" follows, or "refused". */
  | Readonly<{ answer: "admitted"; id: number; waits: boolean; output?: OutputHeld; priority?: Priority }>
  | Readonly<{ answer: "ready"; id: number; output?: OutputHeld }>
  /** How many are held for it then. */
  | Readonly<{ answer: "grown"; id: number; held: number }>
  /** `charged`: where it is less than the usage. */
  | Readonly<{ answer: "settled"; id: number; charged?: Usage }>
  /** Or it could not be, which is in the log. */
  | Readonly<{ answer: "kept"; id: number }>
  | Readonly<{ answer: "granted"; id: number; node: string }>
  /** Not admitted, waited in vain, or no place. */
  | Readonly<{ answer: "refused"; id: number; refusal: Refusal }>
  /** The disk could not be read or written. */
  | Readonly<{ answer: "unavailable"; id: number }>
  /** Nobody knows whether it was done. */
  | Readonly<{ answer: "unknown"; id: number }>
  /** A fault of ours, which is in the log. */
  | Readonly<{ answer: "failed"; id: number; reason: string }>;

/** What the main thread tells all relays. Comes before every answer that rests on it. */
export type News =
  | Readonly<{ news: "nodes"; nodes: readonly NodeConfig[] }>
  | Readonly<{ news: "engine"; node: string; engine: Engine }>
  | Readonly<{ news: "health"; node: string; health: NodeHealth }>
  | Readonly<{ news: "drained"; nodes: readonly string[] }>
  | Readonly<{ news: "rules"; rules: RelayRules }>;

/** What may change while the server runs, beside its nodes. */
export type RelayRules = Readonly<{
  models: readonly Model[];
  plans: Catalog["plans"];
  creditPacksTokens: readonly number[];
  /** Of the configuration what a reload may have changed. */
  options: LiveOptions;
  /** Texts that no log may hold. */
  secrets: readonly string[];
}>;

export type ToRelay = MainThreadAnswer | News;
