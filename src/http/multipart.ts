// Reads a body of multipart/form-data as it comes: nothing of it is held but the beginning of what may be a boundary. The
// runtime's own `formData()` has the whole body in memory first.
import { isRefusal, refuse } from "../core/refusals.ts";
import type { Refusal } from "../core/types.ts";
import { decoded } from "./api-routes.ts";

/** Of a part: its field's name and, of a file, its name. Its content follows in pieces. */
type PartHead = Readonly<{ field: string; filename: string | null }>;

const headMaxBytes = 4_096;
const partsMax = 32;
const boundaryMaxLength = 70; // RFC 2046
const [end, blank] = ["\r\n", "\r\n\r\n"];

/** Null where the body is of another type. */
export function boundaryOf(contentType: string | null): string | null {
  const [type = ""] = contentType?.split(";") ?? [];
  if (type.trim().toLowerCase() !== "multipart/form-data") return null;
  const boundary = parametersOf(contentType!.slice(0, headMaxBytes)).get("boundary") ?? "";
  return boundary === "" || boundary.length > boundaryMaxLength ? null : boundary;
}

/** Heads, each followed by its content; a refusal is the last. */
async function* partsOf(
  body: AsyncIterable<Uint8Array>,
  boundary: string,
): AsyncGenerator<PartHead | Uint8Array | Refusal> {
  const mark = Buffer.from(`${end}--${boundary}`);
  let state: "before" | "head" | "content" | "mark" = "before";
  let parts = 0;
  let rest: Buffer = Buffer.from(end); // the first boundary may stand at the beginning
  for await (const bytes of body) {
    rest = rest.length === 0 ? Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length) : Buffer.concat([rest, bytes]);
    for (;;) {
      if (state === "before" || state === "content") {
        const at = rest.indexOf(mark);
        const sure = at === -1 ? Math.max(0, rest.length - mark.length + 1) : at;
        if (state === "content" && sure > 0) yield rest.subarray(0, sure);
        rest = rest.subarray(at === -1 ? sure : at + mark.length);
        if (at === -1) break;
        state = "mark";
      } else if (state === "mark") {
        if (rest.length < 2) break;
        const next = rest.toString("latin1", 0, 2);
        if (next === "--") return;
        if (next !== end) return yield unreadable("a boundary must be followed by a line's end");
        rest = rest.subarray(2);
        state = "head";
      } else {
        const at = rest.indexOf(blank);
        if (at > headMaxBytes || (at === -1 && rest.length > headMaxBytes)) {
          return yield unreadable("a part's headers are too long");
        }
        if (at === -1) break;
        const head = headOf(rest.toString("utf8", 0, at));
        parts += 1;
        if (head === null || parts > partsMax) return yield unreadable("a part has no name, or there are too many");
        yield head;
        rest = rest.subarray(at + blank.length);
        state = "content";
      }
    }
  }
  yield unreadable("it ended early");
}

/** `filename`: null where there is no file. */
export type TakenForm = Readonly<{
  fields: readonly (readonly [name: string, value: string])[];
  filename: string | null;
}>;

/** Writes the part `file` to `content`, and keeps the others. */
export async function takeForm(
  body: AsyncIterable<Uint8Array>,
  boundary: string,
  content: Readonly<{ write(bytes: Uint8Array): Promise<Refusal | null> }>,
  valueMaxBytes: number,
): Promise<TakenForm | Refusal> {
  const fields: [string, string][] = [];
  let filename: string | null = null;
  let field: string | null = null;
  let value: Buffer[] = [];
  let valueBytes = 0;
  const close = (): void => {
    if (field !== null) fields.push([field, Buffer.concat(value).toString()]);
    value = [];
    valueBytes = 0;
  };
  try {
    for await (const piece of partsOf(body, boundary)) {
      if (isRefusal(piece)) return piece;
      if (!(piece instanceof Uint8Array)) {
        close();
        const isFile = piece.field === "file";
        if (isFile && filename !== null) return refuse("malformed", { reason: "file: one request uploads one file" });
        if (isFile) filename = piece.filename ?? "";
        field = isFile ? null : piece.field;
      } else if (field === null) {
        const refusal = filename === null ? null : await content.write(piece);
        if (refusal !== null) return refusal;
      } else {
        value.push(Buffer.from(piece));
        valueBytes += piece.length;
        if (valueBytes > valueMaxBytes) return refuse("malformed", { reason: `${field} is too long` });
      }
    }
  } catch (thrown) {
    // The client left before its body was complete; no one reads this answer. What the disk fails at is another matter.
    if ((thrown as { syscall?: unknown }).syscall !== undefined) throw thrown;
    return refuse("unreadable", { reason: "The request body ended early" });
  }
  close();
  return { fields, filename };
}

const unreadable = (why: string): Refusal =>
  refuse("unreadable", { reason: `The request body is no multipart/form-data: ${why}` });

function headOf(headers: string): PartHead | null {
  const line = headers.split(end).find((line) => /^content-disposition:/i.test(line)) ?? "";
  const parameters = parametersOf(line);
  const field = parameters.get("name");
  if (field === undefined) return null;
  const [charset, encoded] = parameters.get("filename*")?.split("''") ?? [];
  const filename = charset?.toLowerCase() === "utf-8" && encoded !== undefined ? decoded(encoded) : null;
  return { field, filename: filename ?? parameters.get("filename") ?? null };
}

/** Of a header, by their names in lower case. Clients escape a quote as %22 or with a backslash. */
const parametersOf = (header: string): ReadonlyMap<string, string> =>
  new Map(
    [...header.matchAll(/;\s*([\w*-]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s;"]*))/g)].map(([, name, quoted, plain]) => [
      name!.toLowerCase(),
      quoted?.replace(/\\(["\\])/g, "$1").replaceAll("%22", '"') ?? plain!,
    ]),
  );
