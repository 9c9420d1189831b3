// Writes JSON as a Python literal, for the examples.

/** A JSON value as a Python literal; a JSON string is a Python string too. */
export function python(value: unknown, indent: string): string {
  if (value === null || value === undefined) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value !== "object") return JSON.stringify(value);
  const inner = `${indent}    `;
  const [open, parts, close] = Array.isArray(value)
    ? ["[", value.map((item) => python(item, inner)), "]"]
    : ["{", Object.entries(value).map(([name, item]) => `${JSON.stringify(name)}: ${python(item, inner)}`), "}"];
  if (parts.length === 0) return open + close;
  const line = `${open}${parts.join(", ")}${close}`;
  if (line.length <= 60 && !line.includes("\n")) return line;
  return `${open}\n${parts.map((part) => `${inner}${part},`).join("\n")}\n${indent}${close}`;
}
