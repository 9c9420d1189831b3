// Tool-call deltas -> Pieces. Engines differ: whole calls or names first; ids empty, numeric, repeated or missing;
// names repeated, in fragments or late; arguments as an object.
import { base62Digits } from "../core/base62.ts";
import { JsonEnd } from "../core/json-end.ts";
import { calledNameMaxLength } from "./limits.ts";
import type { Sink, Tool } from "../core/types.ts";
import { record } from "./json.ts";

/** Tool calls of one answer; it ends with `length` at one more. No client runs as many. */
const answerCallsMax = 128;

type OpenCall = {
  /** The node's `index`, which later deltas use for the call. */
  key: number;
  nodeId: string;
  name: string;
  /** Index of its Piece, -1 until it was sent; from then on id and name are final. */
  index: number;
  /** Arguments that came before the call could be sent. */
  held: string;
  hasArguments: boolean;
  /** Follows the arguments of a call without an id: once they are complete, the next delta is another call. */
  end: JsonEnd | null;
  /** One call too many for a client that wants no parallel ones. */
  leftOut: boolean;
};

const idLength = 24;

/** The calls of one answer. `pieces` receives each in order; a call's Piece always precedes its arguments. */
export class ToolCalls {
  readonly #pieces: Pick<Sink, "piece">;
  readonly #tools: readonly Tool[];
  readonly #parallel: boolean;
  /** In order of appearance; most answers have none. */
  readonly #calls: OpenCall[] = [];
  /** The latest call under each key. */
  #byKey: Map<number, OpenCall> | null = null;
  #ids: Set<string> | null = null;
  #names: Set<string> | null = null;
  #sent = 0;

  /** `parallel`: false drops all calls but the first, for nodes that ignore parallel_tool_calls: false. */
  constructor(tools: readonly Tool[], parallel: boolean, pieces: Pick<Sink, "piece">) {
    this.#tools = tools;
    this.#parallel = parallel;
    this.#pieces = pieces;
  }

  get count(): number {
    return this.#sent;
  }

  sentIndex(key: number): number {
    return this.#byKey?.get(key)?.index ?? -1;
  }

  /** More arguments for the call that the node names `key`, which was sent. */
  more(key: number, literal: string): void {
    this.#give(this.#byKey!.get(key)!, literal);
  }

  /** One item of `delta.tool_calls`. Returns the length it adds, though only `room` is taken; -1: more than allowed. */
  delta(value: unknown, position: number, room: number): number {
    const item = record(value);
    const called = record(item?.["function"]);
    if (item === null) return 0;
    const id = typeof item["id"] === "number" ? String(item["id"]) : typeof item["id"] === "string" ? item["id"] : "";
    const name = typeof called?.["name"] === "string" ? called["name"] : "";
    const given = called?.["arguments"];
    const json = typeof given === "string" ? given : record(given) === null ? "" : JSON.stringify(given);
    const call = this.#callOf(item["index"], position, id, name, json);
    if (call === null) return -1;
    const nameLength = call.name.length;
    if (call.nodeId === "") call.nodeId = id;
    if (call.index < 0) call.name = this.#joinName(call.name, name);
    if (call.name.length > calledNameMaxLength) return -1;
    const length = Math.max(0, call.name.length - nameLength) + json.length;
    if (json === "" || call.leftOut) return length;
    const taken = json.length > room ? json.slice(0, room) : json;
    call.hasArguments = true;
    // The name is complete once arguments come: before that, a fragment may be another tool's whole name.
    if (call.index < 0 && call.name !== "") this.#send(call);
    if (call.index < 0) call.held += taken;
    else this.#give(call, JSON.stringify(taken.toWellFormed()));
    return length;
  }

  /** The answer is complete: sends what waited. False when a call never got a name. */
  finish(): boolean {
    for (const call of this.#calls) {
      if (call.leftOut) continue;
      if (call.index < 0) {
        if (call.name === "" && this.#tools.length === 1) call.name = this.#tools[0]!.name;
        if (call.name === "") return false;
        this.#send(call);
      }
      // A tool without parameters: clients parse the arguments, and "" is not JSON.
      if (!call.hasArguments) this.#pieces.piece({ kind: "call-arguments", index: call.index, literal: '"{}"' });
      call.hasArguments = true;
    }
    return true;
  }

  /** Null where it would be one too many. */
  #callOf(index: unknown, position: number, id: string, name: string, json: string): OpenCall | null {
    const last = this.#calls.at(-1);
    // (1) without an index: a call's first delta names it, a later one continues the last call
    const key =
      typeof index === "number" ? index : id === "" && name === "" && last !== undefined ? last.key : position;
    const open = this.#byKey?.get(key);
    // (2) an index not seen yet
    if (open === undefined) return this.#open(key);
    // (3) the same index again for another call: some engines number every call 0
    const otherId = id !== "" && open.nodeId !== "" && id !== open.nodeId;
    const otherName = open.hasArguments && open.name !== "" && name !== open.name;
    if (name !== "" && (otherId || (otherName && (id === "" || id !== open.nodeId)))) return this.#open(key);
    // (4) without an id, the same tool once more: a call with a complete object takes no second one
    if (name === open.name && id === "" && json.trimStart().startsWith("{") && isWhole(open)) return this.#open(key);
    // (5) more of the same
    return open;
  }

  #isTool(name: string): boolean {
    this.#names ??= new Set(this.#tools.map((tool) => tool.name));
    return this.#names.has(name);
  }

  #open(key: number): OpenCall | null {
    if (this.#calls.length === answerCallsMax) return null;
    const leftOut = !this.#parallel && this.#calls.length > 0;
    const call: OpenCall = { key, nodeId: "", name: "", index: -1, held: "", hasArguments: false, end: null, leftOut };
    this.#calls.push(call);
    (this.#byKey ??= new Map()).set(key, call);
    return call;
  }

  #joinName(name: string, fragment: string): string {
    if (name === "" || fragment === "" || fragment === name) return name || fragment;
    const joined = name + fragment;
    if (this.#isTool(joined)) return joined;
    if (this.#isTool(name)) return name;
    return fragment.startsWith(name) ? fragment : joined;
  }

  #send(call: OpenCall): void {
    call.index = this.#sent++;
    const usable = call.nodeId !== "" && this.#ids?.has(call.nodeId) !== true;
    const id = usable ? call.nodeId : madeUpId();
    (this.#ids ??= new Set()).add(id);
    this.#pieces.piece({ kind: "call", index: call.index, id, name: call.name });
    if (call.held === "") return;
    this.#give(call, JSON.stringify(call.held.toWellFormed()));
    call.held = "";
  }

  #give(call: OpenCall, literal: string): void {
    if (call.nodeId === "") (call.end ??= new JsonEnd()).push(JSON.parse(literal) as string);
    this.#pieces.piece({ kind: "call-arguments", index: call.index, literal });
  }
}

/** Whether a call without an id has complete arguments. */
const isWhole = ({ nodeId, end }: OpenCall): boolean => nodeId === "" && end !== null && end.reached;

function madeUpId(): string {
  let id = "call_";
  for (const byte of crypto.getRandomValues(new Uint8Array(idLength))) id += base62Digits[byte % base62Digits.length];
  return id;
}
