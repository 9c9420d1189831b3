// The loop alone, with scripted rounds and tools: what the model is asked in each round, what the client gets, and what
// is counted.
import { describe, expect, test } from "bun:test";
import { anySearch } from "../../src/dialects/request/search-request.ts";
import { refuse } from "../../src/core/refusals.ts";
import type { OwnedTool } from "../../src/tools/owned-tool.ts";
import { SearchFailed, type SearchProvider } from "../../src/tools/search/search-provider.ts";
import { ownedCallsAtOnceMax, ownedCallsPerRoundMax, ToolLoop, toolRoundsMax } from "../../src/tools/tool-loop.ts";
import type { Ask, Ending, FinishReason, Piece, Sink, Source, ToolOutcome, Turn, Usage } from "../../src/core/types.ts";
import { askOf, firstPartyModel, toolOf } from "../fixtures/asks.ts";

const usage: Usage = { inputFresh: 100, inputCached: 20, output: 30, reasoning: 5 };
const bun: Source = { title: "Bun", url: "https://bun.example/", text: "Bun is fast." };
const searching = { webSearch: anySearch };

const text = (value: string): Piece => ({ kind: "text", literal: JSON.stringify(value), logprobs: null });
const call = (index: number, name: string, given: unknown = { query: "bun" }): Piece[] => [
  { kind: "call", index, id: `call_${index}`, name },
  {
    kind: "call-arguments",
    index,
    literal: JSON.stringify(typeof given === "string" ? given : JSON.stringify(given)),
  },
];
const ends = (reason: FinishReason = "stop", more: object = {}): Ending => ({
  kind: "end",
  reason,
  stopSequence: null,
  usage,
  estimated: false,
  ...more,
});

/** One round of the model: its pieces, and how it ends. */
type Played = Readonly<{ pieces: readonly Piece[]; ending?: Ending; begins?: () => void }>;
const searches: Played = { pieces: call(0, "web_search"), ending: ends("tool_calls") };
const answers: Played = { pieces: [text("Done.")] };

class World {
  readonly asks: Ask[] = [];
  readonly pieces: Piece[] = [];
  readonly cancelSignal = new AbortController();
  readonly queries: string[] = [];
  found: readonly Source[] = [bun];
  provider: SearchProvider | null = {
    search: async (query) => {
      this.queries.push(query);
      return this.found;
    },
    close: async () => {},
  };
  serverTools: readonly OwnedTool[] = [];
  left = 3;
  /** Calls of the search service that are left. */
  calls = Infinity;
  /** Whether a further round may begin, and what was asked: tokens of the rounds before, and of the next prompt. */
  goesOn = (): boolean => true;
  readonly askedToGoOn: [number, number][] = [];
  kept = 0;
  held = 0;
  readonly logged: string[] = [];

  async answer(ask: Ask, rounds: readonly Played[]): Promise<Ending> {
    const loop = new ToolLoop({
      provider: this.provider,
      searches: {
        take: () => {
          if (this.left === this.held) return null;
          this.held += 1;
          return {
            keep: () => {
              this.kept += 1;
              this.left -= 1;
            },
            call: () => this.calls-- > 0,
            [Symbol.dispose]: () => {
              this.held -= 1;
            },
          };
        },
      },
      serverTools: () => this.serverTools,
      clock: { wall: () => 1_000 },
      log: (_level, event) => this.logged.push(event),
    });
    const sink: Sink = { piece: (piece) => this.pieces.push(piece), flush: () => null };
    const goesOn = (spent: Usage, inputTokens: number): boolean => {
      this.askedToGoOn.push([spent.inputFresh + spent.inputCached + spent.output, inputTokens]);
      return this.goesOn();
    };
    return loop.answer(
      ask,
      { account: 7, cancelSignal: this.cancelSignal.signal, goesOn },
      sink,
      async (asked, below) => {
        this.asks.push(asked);
        const played = rounds[Math.min(this.asks.length, rounds.length) - 1]!;
        played.begins?.();
        for (const piece of played.pieces) below.piece(piece);
        return played.ending ?? ends();
      },
    );
  }

  get kinds(): string[] {
    return this.pieces.map(({ kind }) => kind);
  }
}

function serverTool(name: string, run: OwnedTool["run"]): OwnedTool {
  return { tool: toolOf(`files__${name}`), serverTool: { server: "files", name }, run };
}
const gives = (value: string): ToolOutcome => ({ text: value, failed: false, sources: [] });
const toolTurns = (ask: Ask): Extract<Turn, { role: "tool" }>[] => ask.turns.filter((turn) => turn.role === "tool");

test("what a model reads of the servers' tools is known beforehand, and is nothing where they are not offered", () => {
  const echo = serverTool("echo", async () => gives("x"));
  const loop = new ToolLoop({
    provider: null,
    searches: { take: () => null },
    serverTools: () => [echo, serverTool("other", echo.run)],
    clock: { wall: () => 1_000 },
    log: () => {},
  });
  const bytes = JSON.stringify(toolOf("files__echo")).length + JSON.stringify(toolOf("files__other")).length;
  expect(loop.offeredBytes(askOf(), 7)).toBe(bytes);
  expect(loop.offeredBytes(askOf({ toolChoice: "none" }), 7)).toBe(0);
  expect(loop.offeredBytes(askOf({ format: { kind: "json_object" } }), 7)).toBe(0);
});

describe("rounds", () => {
  test("a request without owned tools is one round with the very ask and sink", async () => {
    const world = new World();
    const ask = askOf({ tools: [toolOf("web_search")] });
    expect(await world.answer(ask, [{ pieces: call(0, "web_search"), ending: ends("tool_calls") }])).toEqual(
      ends("tool_calls"),
    );
    expect(world.asks).toEqual([ask]);
    expect(world.asks[0]).toBe(ask);
    expect(world.kinds).toEqual(["call", "call-arguments"]);
  });

  test.each(Array.from({ length: 11 }, (_, rounds) => rounds + 1))("%i rounds sum up", async (rounds) => {
    const world = new World();
    const script = [...Array.from({ length: rounds - 1 }, () => searches), answers];
    const ending = await world.answer(askOf(searching), script);
    const done = Math.min(rounds, toolRoundsMax);
    expect(world.asks).toHaveLength(done);
    expect(world.queries).toHaveLength(done - 1);
    expect(ending).toMatchObject({
      kind: "end",
      reason: "stop",
      usage: { inputFresh: 100 * done, inputCached: 20 * done, output: 30 * done, reasoning: 5 * done },
    });
    expect(world.kinds.filter((kind) => kind === "call")).toEqual([]); // ours are never handed to the client
    expect(world.kept).toBe(rounds === 1 ? 0 : 1); // one of the day's searches, however often it searched
  });

  test("a further one is not begun where the account has nothing left for it: what was answered ends with length", async () => {
    const world = new World();
    world.goesOn = () => world.askedToGoOn.length < 2;
    const ending = await world.answer(askOf(searching), [searches, searches, answers]);
    expect(ending).toMatchObject({ kind: "end", reason: "length", usage: { inputFresh: 200, output: 60 } });
    expect(world.asks).toHaveLength(2);
    expect(world.kinds.filter((kind) => kind === "owned-result")).toHaveLength(2);
    // A prompt is the one before, which was counted, and what was added to it.
    const [first, second] = world.askedToGoOn;
    expect([first![0], second![0]]).toEqual([150, 300]);
    expect(first![1]).toBeGreaterThan(120);
    expect(first![1]).toBeLessThan(2_000);
  });

  test("the tenth is asked without tools, and told so behind the last result's fence", async () => {
    const world = new World();
    await world.answer(askOf(searching), [searches]);
    const choices = world.asks.map(({ toolChoice }) => toolChoice);
    expect(choices).toEqual([...Array.from({ length: 9 }, () => "auto" as const), "none"]);
    expect(toolTurns(world.asks[9]!).at(-1)!.content).toMatch(/>>>\n\nNo more tools can be called\. [^<>]+$/);
    expect(toolTurns(world.asks[8]!).at(-1)!.content).not.toContain("No more tools");
  });

  test("the next one is given what the model thought, said and called, and what came of it", async () => {
    const world = new World();
    const thinks: Piece = { kind: "reasoning", literal: '"Hm."' };
    const first = { pieces: [thinks, text("I "), text("look."), ...call(0, "web_search")], ending: ends("tool_calls") };
    await world.answer(askOf({ ...searching, bodyBytes: 100 }), [first, answers]);
    expect(world.asks[1]!.turns).toEqual([
      { role: "user", content: "Hello" },
      {
        role: "assistant",
        content: "I look.",
        reasoning: "Hm.",
        calls: [{ id: "call_0", name: "web_search", arguments: '{"query":"bun"}' }],
      },
      {
        role: "tool",
        callId: "call_0",
        content: expect.stringContaining("[1] Bun\nhttps://bun.example/\nBun is fast."),
      },
    ]);
    expect(world.asks[1]!.bodyBytes).toBeGreaterThan(300);
    expect(world.kinds).toEqual(["reasoning", "text", "text", "owned-call", "owned-result", "text"]);
  });

  test("usage is an estimate if that of any round was", async () => {
    const estimated = { ...searches, ending: ends("tool_calls", { estimated: true }) };
    expect(await new World().answer(askOf(searching), [estimated, answers])).toMatchObject({ estimated: true });
  });

  test("a stop sequence ends the answer where it stands", async () => {
    const stopped = ends("stop", { stopSequence: "END" });
    expect(
      await new World().answer(askOf(searching), [searches, { pieces: [text("a")], ending: stopped }]),
    ).toMatchObject({ reason: "stop", stopSequence: "END" });
  });
});

describe("the budget of all rounds", () => {
  test("each next round gets what is left, and without any the answer ends with length", async () => {
    const world = new World();
    const ending = await world.answer(askOf({ ...searching, outputTokensMax: 80 }), [searches]);
    expect(world.asks.map(({ outputTokensMax }) => outputTokensMax)).toEqual([80, 50, 20]);
    expect(ending).toMatchObject({ reason: "length", usage: { output: 90 } });
    expect(world.queries).toHaveLength(2); // the third round's call is not run
  });

  test("does not limit a model whose answer it does not limit", async () => {
    const world = new World();
    await world.answer(askOf({ ...searching, model: firstPartyModel, outputTokensMax: 80 }), [searches]);
    expect(world.asks).toHaveLength(toolRoundsMax);
    expect(world.asks.every(({ outputTokensMax }) => outputTokensMax === 80)).toBe(true);
  });

  test.each(["length", "content_filter"] as const)("a round cut by %s runs no call", async (reason) => {
    const world = new World();
    expect(await world.answer(askOf(searching), [{ ...searches, ending: ends(reason) }])).toMatchObject({ reason });
    expect([world.queries, world.kept, world.held]).toEqual([[], 0, 0]);
  });
});

describe("the client's own tools", () => {
  const bash = toolOf("bash");

  test("stand before ours, and a call of them ends the answer", async () => {
    const world = new World();
    const calls = { pieces: [text("x"), ...call(0, "bash", { command: "ls" })], ending: ends("tool_calls") };
    expect(await world.answer(askOf({ ...searching, tools: [bash] }), [searches, calls])).toMatchObject({
      reason: "tool_calls",
      usage: { output: 60 },
    });
    expect(world.asks[0]!.tools.map(({ name }) => name)).toEqual(["bash", "web_search"]);
    expect(world.kinds.slice(-3)).toEqual(["text", "call", "call-arguments"]);
  });

  test("called beside ours: ours are run and shown, the client's handed over, numbered without ours", async () => {
    const world = new World();
    const both = {
      pieces: [...call(0, "web_search"), ...call(1, "bash", { command: "ls" }), ...call(2, "bash", { command: "pwd" })],
      ending: ends("tool_calls"),
    };
    expect(await world.answer(askOf({ ...searching, tools: [bash] }), [both])).toMatchObject({ reason: "tool_calls" });
    expect(world.asks).toHaveLength(1);
    expect(world.kinds).toEqual(["call", "call-arguments", "call", "call-arguments", "owned-call", "owned-result"]);
    const indices = world.pieces.flatMap((piece) => (piece.kind === "call-arguments" ? [piece.index] : []));
    expect(indices).toEqual([0, 1]);
    expect(world.kept).toBe(1);
  });

  test("keep their names where one of ours has the same", async () => {
    const world = new World();
    const own = toolOf("web_search"); // takes a city, no query: not a search
    const calls = { pieces: call(0, "web_search_2"), ending: ends("tool_calls") };
    await world.answer(askOf({ ...searching, tools: [own] }), [calls, answers]);
    expect(world.asks[0]!.tools.map(({ name }) => name)).toEqual(["web_search", "web_search_2"]);
    expect(world.queries).toEqual(["bun"]);
    const [, turn] = world.asks[1]!.turns;
    expect(turn).toMatchObject({ calls: [{ name: "web_search_2" }] });
  });

  test("a function web_search with a query is answered by our search, under the caller's definition", async () => {
    const world = new World();
    const parameters = { type: "object", properties: { query: { type: "string" } }, required: ["query"] };
    const own = toolOf("web_search", { parameters, description: "the caller's" });
    const ask = askOf({
      webSearch: { ...anySearch, asFunction: true },
      tools: [own],
      toolChoice: { named: "web_search" },
    });
    await world.answer(ask, [searches, answers]);
    expect(world.asks[0]).toMatchObject({ tools: [own], toolChoice: { named: "web_search" } });
    expect(world.kinds).toEqual(["owned-call", "owned-result", "text"]);
  });
});

describe("tool choice", () => {
  test.each(["required", { named: "bash" }] as const)("%p holds for the first round only", async (toolChoice) => {
    const world = new World();
    await world.answer(askOf({ ...searching, tools: [toolOf("bash")], toolChoice }), [searches, answers]);
    expect(world.asks.map((ask) => ask.toolChoice)).toEqual([toolChoice, "auto"]);
  });

  test("a forced search is forced once", async () => {
    const world = new World();
    await world.answer(askOf({ webSearch: { ...anySearch, forced: true } }), [searches, answers]);
    expect(world.asks.map((ask) => ask.toolChoice)).toEqual([{ named: "web_search" }, "auto"]);
  });

  test("with a format the model must search first, and answers in a round without tools, which nodes hold to it", async () => {
    const world = new World();
    const format = { kind: "json_object" } as const;
    await world.answer(askOf({ ...searching, format }), [searches]);
    expect(world.asks.map((ask) => ask.toolChoice)).toEqual([{ named: "web_search", mayAnswer: true }, "none"]);
    expect(world.kinds).toEqual(["owned-call", "owned-result"]);
    const talks = new World();
    await talks.answer(askOf({ ...searching, format }), [
      { pieces: [text("I search. "), ...call(0, "web_search")], ending: ends("tool_calls") },
      { pieces: [text("{}")] },
    ]);
    expect(talks.pieces.filter(({ kind }) => kind === "text")).toEqual([text("{}")]); // JSON alone
    const refuses = new World();
    await refuses.answer(askOf({ ...searching, format }), [{ pieces: [text("{}")] }]);
    expect(refuses.pieces).toEqual([text("{}")]);
    const own = new World();
    await own.answer(askOf({ ...searching, format, tools: [toolOf("bash")] }), [searches, answers]);
    expect(own.asks.map((ask) => ask.toolChoice)).toEqual(["auto", "auto"]);
  });

  test("none means none of ours either, and holds no search", async () => {
    const world = new World();
    world.left = 0; // would be taken
    const ask = askOf({ ...searching, toolChoice: "none" });
    await world.answer(ask, [answers]);
    expect(world.asks[0]).toBe(ask);
  });
});

describe("searches of the day", () => {
  test("none left: answered without, the model does not hear of it", async () => {
    const world = new World();
    world.left = 0;
    const parameters = { type: "object", properties: { query: { type: "string" } }, required: ["query"] };
    const own = toolOf("web_search", { parameters });
    const asFunction = { ...anySearch, asFunction: true };
    for (const toolChoice of ["auto", "required", { named: "web_search" }] as const) {
      await world.answer(askOf({ webSearch: asFunction, tools: [own], toolChoice }), [answers]);
      expect(world.asks.at(-1)).toMatchObject({ tools: [], toolChoice: "auto" });
    }
    await world.answer(askOf({ ...searching, tools: [toolOf("bash")], toolChoice: "required" }), [answers]);
    expect(world.asks.at(-1)).toMatchObject({ tools: [{ name: "bash" }], toolChoice: "required" });
    expect(world.queries).toEqual([]);
  });

  test("without a provider a function of the caller's own stays the caller's", async () => {
    const world = new World();
    world.provider = null;
    const ask = askOf({ webSearch: { ...anySearch, asFunction: true }, tools: [toolOf("web_search")] });
    await world.answer(ask, [searches]);
    expect(world.asks[0]).toBe(ask);
    expect(world.kinds).toEqual(["call", "call-arguments"]);
  });

  test("nothing found: given back", async () => {
    const world = new World();
    world.found = [];
    await world.answer(askOf(searching), [searches, answers]);
    expect([world.kept, world.held]).toEqual([0, 0]);
    expect(toolTurns(world.asks[1]!)[0]!.content).toContain("The search found nothing.");
  });

  test("a failed search is told to the model and the operator, and given back", async () => {
    const world = new World();
    world.provider = { ...world.provider!, search: () => Promise.reject(new SearchFailed("the service answers 500")) };
    expect(await world.answer(askOf(searching), [searches, answers])).toMatchObject({ kind: "end" });
    expect([world.kept, world.held, world.logged]).toEqual([0, 0, ["search failed"]]);
    expect(world.pieces[1]).toMatchObject({ outcome: { failed: true } });
  });

  test("a request that fails in a later round is not counted", async () => {
    const world = new World();
    const failed: Ending = { kind: "failed", refusal: refuse("node_failed"), elsewhere: false };
    expect(await world.answer(askOf(searching), [searches, { pieces: [], ending: failed }])).toEqual(failed);
    expect([world.kept, world.held]).toEqual([0, 0]);
  });

  test("a later round that the node refuses for what it is ends the answer with length, and counts", async () => {
    for (const refusal of [
      refuse("context_length_exceeded", { tokens: 2, maximum: 1 }),
      refuse("malformed", { reason: "no" }),
    ]) {
      const world = new World();
      const failed: Ending = { kind: "failed", refusal, elsewhere: false, ofRequest: true };
      expect(await world.answer(askOf(searching), [searches, { pieces: [], ending: failed }])).toEqual(
        ends("length", { usage }),
      );
      expect(world.kept).toBe(1);
      // the first round is the request as its client made it
      expect(await new World().answer(askOf(searching), [{ pieces: [], ending: failed }])).toEqual(failed);
    }
  });

  test("what was delivered in a later round that is not what was asked for is charged with the rounds before", async () => {
    const world = new World();
    const refusal = refuse("answer_misfit");
    const failed: Ending = { kind: "failed", refusal, elsewhere: false, delivered: { usage, estimated: true } };
    const ending = await world.answer(askOf(searching), [searches, { pieces: [text("no")], ending: failed }]);
    expect(ending).toMatchObject({ refusal, delivered: { usage: { inputFresh: 200, output: 60 }, estimated: true } });
    expect(world.kept).toBe(1);
  });

  test("the client's limit is kept: what is over it is not searched", async () => {
    const world = new World();
    const twice = { pieces: [...call(0, "web_search"), ...call(1, "web_search")], ending: ends("tool_calls") };
    await world.answer(askOf({ webSearch: { ...anySearch, usesMax: 1 } }), [twice, answers]);
    expect(world.queries).toHaveLength(1);
    expect(world.pieces.flatMap((piece) => (piece.kind === "owned-result" ? [piece.outcome.overLimit] : []))).toEqual([
      undefined,
      true,
    ]);
  });
});

describe("calls", () => {
  test("of one round run beside each other, bounded, and are shown in order", async () => {
    const world = new World();
    let running = 0;
    let most = 0;
    world.serverTools = [
      serverTool("read", async (run) => {
        most = Math.max(most, ++running);
        // the first calls take the longest
        for (let turns = 40 - Number(run.id.slice("call_".length)); turns > 0; turns--) await Promise.resolve();
        running -= 1;
        return gives(run.id);
      }),
    ];
    const calls = Array.from({ length: ownedCallsPerRoundMax + 2 }, (_, index) =>
      call(index, "files__read", {}),
    ).flat();
    await world.answer(askOf(), [{ pieces: calls, ending: ends("tool_calls") }, answers]);
    expect(most).toBe(ownedCallsAtOnceMax);
    const results = world.pieces.flatMap((piece) => (piece.kind === "owned-result" ? [piece.outcome] : []));
    expect(results.map(({ text: id, failed }) => (failed ? "not run" : id))).toEqual([
      ...Array.from({ length: ownedCallsPerRoundMax }, (_, index) => `call_${index}`),
      "not run",
      "not run",
    ]);
    expect(toolTurns(world.asks[1]!)).toHaveLength(ownedCallsPerRoundMax + 2); // each call has its result
  });

  test("are shown under the server's own names", async () => {
    const world = new World();
    world.serverTools = [serverTool("read", async () => gives("text"))];
    await world.answer(askOf(), [
      { pieces: call(0, "files__read", { path: "a" }), ending: ends("tool_calls") },
      answers,
    ]);
    expect(world.pieces[0]).toEqual({
      kind: "owned-call",
      call: { id: "call_0", name: "read", arguments: '{"path":"a"}' },
      tool: { server: "files", name: "read" },
    });
  });

  test("whose arguments are no object are not run; the model is told", async () => {
    const world = new World();
    const calls = { pieces: [...call(0, "web_search", "{broken"), ...call(1, "web_search", "[1]")], ending: ends() };
    await world.answer(askOf(searching), [calls, answers]);
    expect(world.queries).toEqual([]);
    expect(toolTurns(world.asks[1]!)[0]!.content).toContain("must be a JSON object");
    for (const piece of world.pieces) if (piece.kind === "owned-call") JSON.parse(piece.call.arguments);
  });

  test("without arguments at all are run with none", async () => {
    const world = new World();
    let given = "";
    world.serverTools = [
      serverTool("list", async (run) => {
        given = run.arguments;
        return gives("a");
      }),
    ];
    const bare: Piece = { kind: "call", index: 0, id: "call_0", name: "files__list" };
    await world.answer(askOf(), [{ pieces: [bare], ending: ends("tool_calls") }, answers]);
    expect(given).toBe("{}");
  });

  test("a tool that breaks its word and rejects is a failed call and a line in the log", async () => {
    const world = new World();
    world.serverTools = [serverTool("read", () => Promise.reject(new Error("bug")))];
    const two = { pieces: [...call(0, "files__read", {}), ...call(1, "files__read", {})], ending: ends("tool_calls") };
    expect(await world.answer(askOf(), [two, answers])).toMatchObject({ kind: "end" });
    expect(world.logged).toHaveLength(2);
  });

  test("servers' tools are not offered where a format is asked for, because engines hold to one or offer the other", async () => {
    const world = new World();
    world.serverTools = [serverTool("read", async () => gives("a"))];
    const ask = askOf({ format: { kind: "json_object" } });
    await world.answer(ask, [answers]);
    expect(world.asks[0]).toBe(ask);
  });
});

describe("a client that leaves", () => {
  test("while a tool runs stops it and pays for the rounds so far, at once", async () => {
    const world = new World();
    let stopped = false;
    world.provider = {
      search: (_query, _max, _account, cancelSignal) =>
        new Promise(() => cancelSignal.addEventListener("abort", () => (stopped = true), { once: true })),
      close: async () => {},
    };
    const answering = world.answer(askOf(searching), [searches, answers]);
    await Promise.resolve();
    world.cancelSignal.abort();
    expect(await answering).toEqual({ kind: "cancelled", usage, estimated: false });
    expect([stopped, world.asks.length, world.held]).toEqual([true, 1, 0]);
  });

  test("while a later round waits for a node pays for the rounds before", async () => {
    const world = new World();
    const left: Ending = { kind: "failed", refusal: refuse("busy"), elsewhere: false };
    const waits = { pieces: [], ending: left, begins: () => world.cancelSignal.abort() };
    const ending = await world.answer(askOf(searching), [searches, waits]);
    expect(ending).toEqual({ kind: "cancelled", usage, estimated: false });
  });

  test("in a later round pays for all rounds, and the search that found something counts", async () => {
    const world = new World();
    const cancelSignal: Ending = { kind: "cancelled", usage, estimated: true };
    expect(
      await world.answer(askOf(searching), [searches, { pieces: [text("B")], ending: cancelSignal }]),
    ).toMatchObject({
      kind: "cancelled",
      usage: { output: 60 },
      estimated: true,
    });
    expect(world.kept).toBe(1);
  });
});

describe("citations", () => {
  const cited = { pieces: [text("Bun is fast [1], they say [2].")] };

  test("are given once there are sources, positions counting all rounds' text", async () => {
    const world = new World();
    const first = { pieces: [text("Let me [1] see. "), ...call(0, "web_search")], ending: ends("tool_calls") };
    await world.answer(askOf(searching), [first, cited]);
    expect(world.pieces.filter(({ kind }) => kind === "citation")).toEqual([
      { kind: "citation", source: bun, start: 28, end: 31 },
    ]);
    expect(toolTurns(world.asks[1]!)[0]!.content).toContain("in square brackets");
  });

  test("are not asked for, nor looked for, where the answer must be JSON", async () => {
    const world = new World();
    await world.answer(askOf({ ...searching, format: { kind: "json_object" } }), [searches, cited]);
    expect(world.kinds).toEqual(["owned-call", "owned-result", "text"]);
    expect(toolTurns(world.asks[1]!)[0]!.content).not.toContain("in square brackets");
  });

  test("a page found twice keeps its number", async () => {
    const world = new World();
    await world.answer(askOf(searching), [searches, searches, answers]);
    for (const { content } of toolTurns(world.asks[2]!)) expect(content).toContain("[1] Bun");
  });
});
