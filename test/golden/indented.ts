// Formats a JSON text for readers. Only white space is added, and only between tokens, so the comparison still covers
// every byte. The layout is the one that `bun fmt` leaves unchanged.

const tokensOf = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^"{}[\],:]+/gs;

/** `json` must be valid and without white space between its tokens. */
export function indented(json: string): string {
  const tokens = json.match(tokensOf) ?? [];
  let at = 0;
  return value("");

  function value(margin: string): string {
    const open = tokens[at++]!;
    if (open !== "{" && open !== "[") return open;
    const close = open === "{" ? "}" : "]";
    const inner = `${margin}  `;
    const members: string[] = [];
    while (tokens[at] !== close) {
      const name = open === "{" ? `${tokens[at++]!}${tokens[at++]!} ` : "";
      members.push(name + value(inner));
      if (tokens[at] === ",") at++;
    }
    at++;
    if (members.length === 0) return open + close;
    const spread = open === "{" || members.some((member) => member.includes("\n"));
    return spread ? `${open}\n${inner}${members.join(`,\n${inner}`)}\n${margin}${close}` : `[${members.join(", ")}]`;
  }
}

/** The text without the white space between its tokens. */
export const compact = (json: string): string => json.replace(/("(?:[^"\\]|\\.)*")|\s+/gs, "$1");
