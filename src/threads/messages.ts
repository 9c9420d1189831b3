// The messages between relays and the main thread. All messages of one turn of the event loop are sent as one JSON
// text: a message of any size costs 3.4 us, and a structured clone costs the main thread twice as much as text.
//
// A question's `id` is the relay's own number; its answer has the same. A request's hold and its place on a node are
// known by the id of the question that got them.
import type { PlanId } from "../core/plan-ids.ts";
import type { AdmissionRequest, Asker } from "../account/money/books.ts";
import type { Catalog } from "../core/catalog.ts";
import type { Outlook } from "../core/forecast.ts";
import type { LiveOptions, NodeConfig } from "../config/config.ts";
import type { StoredResponse } from "../dialects/stored-responses.ts";
import type { Engine } from "../nodes/engine.ts";
import type { NodeOutcome } from "../nodes/node-endpoint.ts";
import type { Entrant, NodeHealth, Place } from "../nodes/queue/slot-queue.ts";
import type { Priority } from "../core/priority.ts";
import type { RatesLeft } from "../core/rates-left.ts";
import type { AccountId, Course, Model, ModelKind, OutputHeld, Principal, Refusal, Usage } from "../core/types.ts";

/** A request that wants a place in line. */
export type Wanted = Entrant & Pick<Place, "deadlineMs">;

/** From a relay, executed in order. */
export type RelayOperation =
  /** Asks whose key it is. */
  | Readonly<{ op: "principal"; id: number; keyHash: string }>
  /** Counts a request that is not admitted for flood protection; with `ifFull`, only where its window is already full. */
  | Readonly<{ op: "count"; id: number; account: AccountId; kind: ModelKind; ifFull: boolean }>
  /** Why the sender may not ask the model. */
  | Readonly<{ op: "may ask"; id: number; asker: Asker; model: string }>
  | (Readonly<{ op: "admit"; id: number }> & AdmissionRequest<string>)
  | Readonly<{ op: "settle"; id: number; hold: number; usage: Usage; estimated: boolean; course?: Course | undefined }>
  /** The answer has this many output tokens. */
  | Readonly<{ op: "grow"; id: number; hold: number; written: number }>
  /** The hold is given back. Not sent for a hold that was to be settled, whatever the result. */
  | Readonly<{ op: "release"; hold: number }>
  /** `prompt`: see packBlocks. */
  | (Readonly<{ op: "enter"; id: number; prompt: string; excluded: readonly string[] }> &
      Omit<Wanted, "prompt" | "excluded">)
  /** The first pieces of an answer came. */
  | Readonly<{ op: "began"; place: number }>
  /** Asks what the place in line, or the hold that waits, can expect; the last answer counts. */
  | Readonly<{ op: "forecast"; place: number }>
  /** The place is no longer needed; if it was already granted, it is given back. */
  | Readonly<{ op: "leave"; place: number }>
  /** The place is given back; `outcome` is null where the node got no request. */
  | Readonly<{ op: "done"; place: number; outcome: NodeOutcome | null }>
  /** Has an id where the end of the reply waits for it. */
  | Readonly<{ op: "keep"; id?: number; account: AccountId; response: StoredResponse }>;

/** The main thread's answers to questions. */
export type MainThreadAnswer =
  /** `version`: the keys' version at the lookup. */
  | Readonly<{ answer: "principal"; id: number; principal: Principal | null; version: number }>
  | Readonly<{ answer: "counted"; id: number; refusal: Refusal | null }>
  /** `waits`: for its count to reach the disk, or for other requests of its account; "ready" or "refused" follows. */
  | Readonly<{
      answer: "admitted";
      id: number;
      waits: boolean;
      output?: OutputHeld;
      priority?: Priority;
      rates?: RatesLeft;
    }>
  | Readonly<{ answer: "ready"; id: number; output?: OutputHeld }>
  /** How many tokens are held for it now. */
  | Readonly<{ answer: "grown"; id: number; held: number }>
  /** `charged`: present where it is less than the usage. */
  | Readonly<{ answer: "settled"; id: number; charged?: Usage }>
  /** Or it could not be kept, which is in the log. */
  | Readonly<{ answer: "kept"; id: number }>
  | Readonly<{ answer: "granted"; id: number; node: string; plan?: PlanId | undefined }>
  /** Null: the place does not wait. Nothing waits for this answer. */
  | Readonly<{ answer: "forecast"; id: number; forecast: Outlook | null }>
  /** Not admitted, waited in vain, or got no place. */
  | Readonly<{ answer: "refused"; id: number; refusal: Refusal }>
  /** The disk could not be read or written. */
  | Readonly<{ answer: "unavailable"; id: number }>
  /** It is unknown whether it was done. */
  | Readonly<{ answer: "unknown"; id: number }>
  /** A fault of ours, which is in the log. */
  | Readonly<{ answer: "failed"; id: number; reason: string }>;

/** News for all relays. Each arrives before the answers that depend on it. */
export type News =
  | Readonly<{ news: "nodes"; nodes: readonly NodeConfig[] }>
  | Readonly<{ news: "engine"; node: string; engine: Engine }>
  | Readonly<{ news: "health"; node: string; health: NodeHealth }>
  | Readonly<{ news: "drained"; nodes: readonly string[] }>
  | Readonly<{ news: "rules"; rules: RelayRules }>;

/** What may change while the server runs, apart from its nodes. */
export type RelayRules = Readonly<{
  models: readonly Model[];
  plans: Catalog["plans"];
  creditPacksTokens: readonly number[];
  /** The part of the configuration that a reload may change. */
  options: LiveOptions;
  /** Texts that must not appear in any log. */
  secrets: readonly string[];
}>;

export type ToRelay = MainThreadAnswer | News;
