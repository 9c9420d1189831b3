// Corrupts a request: a few random changes of its JSON tree, or of its bytes.
type Json = unknown;
type Random = Readonly<{ below(limit: number): number; pick<Item>(items: readonly Item[]): Item }>;

const oddValues: readonly Json[] = [
  null,
  true,
  false,
  0,
  -1,
  -0.5,
  1e308,
  2 ** 53,
  65_537,
  "",
  " ",
  "\u0000",
  "\ud800",
  "é\u2028😀",
  "data:image/png;base64,AAAA",
  "data:,",
  "http://[::1]:0/",
  "x".repeat(10_000),
  [],
  {},
  [[]],
  [null],
  [{}],
  { type: "text" },
  { type: "function", function: {} },
  { __proto__: null, toString: 1 },
  { role: "tool" },
];
const oddKeys = ["__proto__", "constructor", "toString", "", "type", "role", "content", "stream", "a".repeat(500)];

/** A place in a tree: a key or a position of an object or a list. */
type Place = { parent: Record<string, Json>; key: string };

function placesOf(value: Json, places: Place[] = []): Place[] {
  if (typeof value !== "object" || value === null) return places;
  for (const key of Object.keys(value)) {
    places.push({ parent: value as Record<string, Json>, key });
    placesOf((value as Record<string, Json>)[key], places);
  }
  return places;
}

function spoilTree(tree: Json, random: Random): void {
  const places = placesOf(tree);
  if (places.length === 0) return;
  const { parent, key } = random.pick(places);
  const set = (name: string, value: Json) => {
    if (Array.isArray(parent)) parent[Number(name)] = value;
    else Object.defineProperty(parent, name, { value, enumerable: true, configurable: true, writable: true });
  };
  switch (random.below(7)) {
    case 0:
    case 1:
      return set(key, structuredClone(random.pick(oddValues)));
    case 2:
      if (Array.isArray(parent)) parent.splice(Number(key), 1);
      else delete parent[key];
      return;
    case 3:
      return set(key, [parent[key]]);
    case 4: {
      const other = random.pick(places);
      return set(key, structuredClone(other.parent[other.key]));
    }
    case 5:
      return set(Array.isArray(parent) ? String(parent.length) : random.pick(oddKeys), structuredClone(parent[key]));
    case 6:
      if (typeof parent[key] === "string") set(key, `${parent[key]}`.slice(0, random.below(20)));
      else if (typeof parent[key] === "number") set(key, -(parent[key] as number));
      return;
  }
}

function spoilText(text: string, random: Random): string {
  const at = random.below(text.length + 1);
  switch (random.below(4)) {
    case 0:
      return text.slice(0, at);
    case 1:
      return text.slice(0, at) + random.pick(['"', "{", "]", ",", "\\u", "\u0000", "1e999", "\ufeff"]) + text.slice(at);
    case 2:
      return text.slice(0, at) + text.slice(at + 1 + random.below(10));
    default:
      return text.slice(0, at) + text.slice(Math.max(0, at - random.below(50)));
  }
}

/** The text of a spoiled copy of the body. */
export function spoiled(body: Json, random: Random): string {
  const tree = structuredClone(body);
  for (let changes = 1 + random.below(3); changes > 0; changes -= 1) spoilTree(tree, random);
  const text = JSON.stringify(tree);
  return random.below(5) === 0 ? spoilText(text, random) : text;
}
