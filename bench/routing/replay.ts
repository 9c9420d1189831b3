// A trace against an address, in real time; a process of its own, because Bun's fetch sends 256 requests at once unless its
// environment says more before it starts. Prints its rows as JSON.
import { answerBegins, GrowingText, type Message, writtenOut } from "./text.ts";
import { messagesOf, type Session, type Trace, traceNamed, alone } from "./traces.ts";
import type { Row } from "./world.ts";

export type Replay = Readonly<{
  trace: string;
  seed: number;
  seconds: number;
  file: string;
  /** Only those who are judged. */
  isAlone: boolean;
  port: number;
  model: string;
  /** By account; the others have the key "". */
  keys: Readonly<Record<string, string>>;
  /** Where nodes are sent down and up. */
  controlPort: number;
}>;

export const traceOf = ({ trace, seed, seconds, file, isAlone }: Replay): Trace => {
  const all = traceNamed(trace, seed, seconds, file);
  return isAlone ? alone(all) : all;
};

/** What is incomplete this long after the last turn is given up. */
const patienceMs = 40_000;

type Event = Readonly<{
  choices?: readonly Readonly<{ delta: Readonly<{ content?: string | null }> }>[];
  usage?: Readonly<{
    prompt_tokens: number;
    prompt_tokens_details?: Readonly<{ cached_tokens?: number }> | null;
  }> | null;
  error?: unknown;
}>;

class Client {
  readonly rows: Row[] = [];
  readonly #replay: Replay;
  readonly #trace: Trace;
  readonly #beganAt = performance.now();

  constructor(replay: Replay) {
    this.#replay = replay;
    this.#trace = traceOf(replay);
  }

  get #now(): number {
    return performance.now() - this.#beganAt;
  }

  async run(): Promise<void> {
    const { sessions, faults, endMs } = this.#trace;
    const meet = faults.map(async ({ at, what, node }) => {
      await Bun.sleep(at);
      await fetch(`http://127.0.0.1:${this.#replay.controlPort}/${what}/${node}`);
    });
    const everything = Promise.all([...meet, ...sessions.map((session) => this.#talk(session))]);
    await Promise.race([everything, Bun.sleep(endMs + patienceMs)]);
    // A first token that never came counts with the time so far.
    for (const row of this.rows) if (row.failure === null) row.firstMs ??= this.#now - row.at;
  }

  async #talk(session: Session): Promise<void> {
    const { turns, isFresh, repeats, restMs } = session;
    let messages: Message[] = [];
    let dueMs = 0;
    for (let at = 0; ; at++) {
      const turn = repeats ? turns[0] : turns[at];
      dueMs = Math.max(turn?.at ?? Infinity, dueMs);
      if (turn === undefined || dueMs >= this.#trace.endMs) return;
      await Bun.sleep(Math.max(0, dueMs - this.#now));
      messages = [...(isFresh ? [] : messages), ...messagesOf(turn, isFresh ? `${at}` : "")];
      const content = await this.#ask(session, messages, turn.output);
      messages = [...messages, { role: "assistant", content }];
      dueMs = this.#now + restMs;
    }
  }

  async #ask(session: Session, messages: readonly Message[], outputTokens: number): Promise<string> {
    const text = new GrowingText();
    for (const message of messages) text.add(writtenOut(message));
    const row: Row = {
      session,
      at: this.#now,
      inputTokens: text.add(answerBegins).tokens,
      outputTokens,
      cachedTokens: 0,
      node: null,
      firstMs: null,
      endMs: null,
      failure: null,
    };
    this.rows.push(row);
    try {
      return await this.#read(row, messages);
    } catch (thrown) {
      row.failure = String(thrown).slice(0, 200);
      return "";
    }
  }

  async #read(row: Row, messages: readonly Message[]): Promise<string> {
    const { port, model, keys } = this.#replay;
    const { account, user, priority, id } = row.session;
    const reply = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        authorization: `Bearer ${keys[account] ?? ""}`,
        "x-session-id": id, // vllm-router's consistent_hash goes by it
        "x-priority": priority,
      },
      body: JSON.stringify({
        model,
        stream: true,
        stream_options: { include_usage: true },
        max_tokens: row.outputTokens,
        messages,
        ...(user !== "" && { user }),
      }),
    });
    if (!reply.ok) throw new Error(`${reply.status} ${await reply.text()}`);
    const decoder = new TextDecoder();
    let rest = "";
    let answer = "";
    for await (const bytes of reply.body!) {
      const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
      rest = lines.pop()!;
      for (const line of lines) {
        if (!line.startsWith("data: {")) continue;
        const { choices, usage, error } = JSON.parse(line.slice(6)) as Event;
        if (error !== undefined) throw new Error(line);
        const content = choices?.[0]?.delta.content ?? "";
        if (content !== "") row.firstMs ??= this.#now - row.at;
        answer += content;
        if (usage != null) row.cachedTokens = usage.prompt_tokens_details?.cached_tokens ?? 0;
      }
    }
    row.endMs = this.#now;
    return answer;
  }
}

if (import.meta.main) {
  const client = new Client(JSON.parse(Bun.argv[2]!) as Replay);
  await client.run();
  await Bun.write(Bun.stdout, JSON.stringify(client.rows));
  process.exit(0);
}
