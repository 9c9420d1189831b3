// The tokenizers that bench/tokens.ts compares ours with. tiktoken is a dependency of Tollgate (its rank file); the others
// are measured where `npm ci --prefix bench/peers` has installed them.
import o200kBase from "tiktoken/encoders/o200k_base.json" with { type: "json" };
import { Tiktoken } from "tiktoken/lite";
import { Tokenizer } from "../src/tokens/tokenizer.ts";

/** Makes an encoder of o200k_base, special-token text as plain text, that has cached no piece yet. */
type MakeEncoder = () => (text: string) => ArrayLike<number>;

export type Tokenizers = Readonly<{
  /** By name; Tollgate's first. */
  makers: ReadonlyMap<string, MakeEncoder>;
  /** Those that are missing, and how to install them. */
  skipped: readonly string[];
}>;

const peersFolder = `${import.meta.dir}/peers`;

export async function loadTokenizers(): Promise<Tokenizers> {
  const own = new Tokenizer("o200k_base");
  const tiktoken = new Tiktoken(o200kBase.bpe_ranks, o200kBase.special_tokens, o200kBase.pat_str);
  const makers = new Map<string, MakeEncoder>([
    ["tollgate", () => (text) => own.encode(text)],
    ["tiktoken", () => (text) => tiktoken.encode_ordinary(text)],
  ]);
  const skipped: string[] = [];
  for (const [name, load] of Object.entries({ "gpt-tokenizer": gptTokenizer, "ai-tokenizer": aiTokenizer })) {
    const make = await load();
    if (make !== null) makers.set(name, make);
    else skipped.push(`${name} skipped: not installed (npm ci --prefix bench/peers)`);
  }
  for (const line of skipped) console.log(`  ${line}`);
  return { makers, skipped };
}

type GptTokenizer = {
  encode(text: string, options: { disallowedSpecial: ReadonlySet<string> }): number[];
  clearMergeCache(): void;
};

async function gptTokenizer(): Promise<MakeEncoder | null> {
  const peer = await installedPeer<GptTokenizer>("gpt-tokenizer/encoding/o200k_base");
  if (peer === null) return null;
  const options = { disallowedSpecial: new Set<string>() };
  return () => {
    peer.clearMergeCache();
    return (text) => peer.encode(text, options);
  };
}

type AiTokenizer = {
  Tokenizer: new (encoding: object) => { encode(text: string, allowed: string[], disallowed: string[]): number[] };
};

async function aiTokenizer(): Promise<MakeEncoder | null> {
  const peer = await installedPeer<AiTokenizer>("ai-tokenizer");
  const encoding = await installedPeer<object>("ai-tokenizer/encoding/o200k_base");
  if (peer === null || encoding === null) return null;
  return () => {
    const tokenizer = new peer.Tokenizer(encoding);
    return (text) => tokenizer.encode(text, [], []);
  };
}

async function installedPeer<Module>(specifier: string): Promise<Module | null> {
  let path: string;
  try {
    path = Bun.resolveSync(specifier, peersFolder);
  } catch {
    return null; // resolveSync has no other failure than "not found"
  }
  return (await import(path)) as Module;
}
