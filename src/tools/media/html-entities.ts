// Decodes HTML's character references, because HTMLRewriter returns raw text.

// U+00A0 to U+00FF have names in this order (HTML 4, section 24.2). References that are missing below stay unchanged.
const latin1 =
  "nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 acute micro " +
  "para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring AElig Ccedil " +
  "Egrave Eacute Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave " +
  "Uacute Ucirc Uuml Yacute THORN szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml " +
  "igrave iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc uuml yacute " +
  "thorn yuml";

const named = new Map<string, string>([
  ...latin1.split(" ").map((name, index) => [name, String.fromCharCode(0xa0 + index)] as const),
  ...Object.entries({
    amp: "&",
    lt: "<",
    gt: ">",
    quot: '"',
    apos: "'",
    ndash: "–",
    mdash: "—",
    lsquo: "‘",
    rsquo: "’",
    sbquo: "‚",
    ldquo: "“",
    rdquo: "”",
    bdquo: "„",
    hellip: "…",
    bull: "•",
    dagger: "†",
    prime: "′",
    Prime: "″",
    lsaquo: "‹",
    rsaquo: "›",
    euro: "€",
    trade: "™",
    larr: "←",
    uarr: "↑",
    rarr: "→",
    darr: "↓",
    harr: "↔",
    rArr: "⇒",
    minus: "−",
    infin: "∞",
    asymp: "≈",
    ne: "≠",
    le: "≤",
    ge: "≥",
    ensp: " ",
    emsp: " ",
    thinsp: " ",
    zwnj: "\u200c",
    zwj: "\u200d",
    Scaron: "Š",
    scaron: "š",
    OElig: "Œ",
    oelig: "œ",
    Yuml: "Ÿ",
  }),
]);

/** Numbered references and the names that pages use; unknown names and impossible numbers stay unchanged. */
export function decodeEntities(text: string): string {
  if (!text.includes("&")) return text;
  return text.replace(
    /&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|([A-Za-z][A-Za-z0-9]{1,31}));/g,
    (whole, decimal, hex, name) => {
      if (name !== undefined) return named.get(name) ?? whole;
      const code = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal);
      const isCharacter = code > 0 && code <= 0x10_ff_ff && (code < 0xd800 || code > 0xdfff);
      return isCharacter ? String.fromCodePoint(code) : "\ufffd";
    },
  );
}
