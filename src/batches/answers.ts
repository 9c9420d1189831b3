// What the routes of batches answer: OpenAI's `/v1/batches` and Anthropic's `/v1/messages/batches`.
import { Readable } from "node:stream";
import { keyHashOf } from "../account/people/keys.ts";
import { isRecord } from "../core/is-record.ts";
import { isRefusal, refuse } from "../core/refusals.ts";
import type { Endpoint, Ms, Refusal } from "../core/types.ts";
import { dayMs, hourMs } from "../core/units.ts";
import type { Files } from "../files/files.ts";
import { isLarge } from "../gateway.ts";
import type { KeptAsked, KeptReply } from "../http/kept-routes.ts";
import { type Batch, type BatchForm, hasEnded, shownBatch } from "./batch.ts";
import { type Batches, keepMs } from "./batches.ts";

const dayWindowMs = dayMs;
const windowMaxMs = 7 * dayMs;
const metadataMax = 16;

type AnswerParts = Readonly<{
  batches: Batches;
  files: Pick<Files, "get">;
  /** Those that lines may ask. */
  endpoints: readonly Endpoint[];
}>;

type Answer = (asked: KeptAsked, parts: AnswerParts) => Promise<KeptReply>;

const wrong = (reason: string): Refusal => refuse("malformed", { reason });
const unknown = (id: string): Refusal => refuse("not_found", { reason: `No batch found with id '${id}'.` });
const json = (shown: object): string => JSON.stringify(shown);

/** Another form's batch is as unknown as another account's. */
async function found(form: BatchForm, { asker, id }: KeptAsked, { batches }: AnswerParts): Promise<Batch | Refusal> {
  const batch = await batches.get(asker.account, id);
  return batch?.form === form ? batch : unknown(id);
}

const shown =
  (form: BatchForm): Answer =>
  async (asked, parts) => {
    const batch = await found(form, asked, parts);
    return isRefusal(batch) ? batch : json(shownBatch(batch));
  };

const cancelled =
  (form: BatchForm): Answer =>
  async (asked, parts) => {
    const batch = await found(form, asked, parts);
    if (isRefusal(batch)) return batch;
    if (hasEnded(batch) && form === "openai") {
      return wrong(`Cannot cancel a batch with status '${batch.state}'.`);
    }
    return json(shownBatch((await parts.batches.cancel(batch.account, batch.id)) ?? batch));
  };

const listed =
  (form: BatchForm): Answer =>
  async ({ asker, request }, { batches }) => {
    const { searchParams } = new URL(request.url);
    const most = form === "openai" ? 100 : 1_000;
    const asked = searchParams.get("limit") ?? "20";
    const limit = /^\d{1,4}$/.test(asked) ? Number(asked) : 0;
    if (limit < 1 || limit > most) return wrong(`limit: must be a whole number from 1 to ${most}`);
    const after = searchParams.get(form === "openai" ? "after" : "after_id") ?? undefined;
    const before = searchParams.get("before_id") ?? undefined;
    const page = await batches.list(asker.account, form, { limit: limit + 1, after, before });
    const isMore = page.length > limit;
    const data = (before === undefined ? page.slice(0, limit) : page.slice(-limit)).map(shownBatch);
    const idOf = (batch: Batch | undefined): string | null => batch?.id ?? null;
    const shownPage = before === undefined ? page.slice(0, limit) : page.slice(-limit);
    const ends = { first_id: idOf(shownPage[0]), last_id: idOf(shownPage.at(-1)), has_more: isMore };
    return json(form === "openai" ? { object: "list", data, ...ends } : { data, ...ends });
  };

const createdFromFile: Answer = async (asked, { batches, files, endpoints }) => {
  const { asker } = asked;
  const body = await asked.body();
  if (isRefusal(body)) return body;
  if (isLarge(body) || !isRecord(body.json)) return wrong("The request body must be a JSON object");
  const { input_file_id: fileId, endpoint, completion_window: window, metadata = null } = body.json;
  if (typeof fileId !== "string") return wrong("input_file_id: must be the id of an uploaded file");
  if (!endpoints.includes(endpoint as Endpoint)) return wrong(`endpoint: must be one of ${endpoints.join(", ")}`);
  const windowMs = windowOf(window);
  if (windowMs === null) return wrong('completion_window: must be "24h", or other hours or days up to "7d"');
  if (metadata !== null && !isMetadata(metadata)) {
    return wrong(`metadata: must be up to ${metadataMax} texts of up to 512 characters, under keys of up to 64`);
  }
  const outputKeepMs = keptFor(body.json["output_expires_after"]);
  if (outputKeepMs === null) {
    return wrong('output_expires_after: must be { "anchor": "created_at", "seconds": 3600 to 2592000 }');
  }
  const file = await files.get(asker.account, fileId);
  if (file === null) return refuse("not_found", { reason: `input_file_id: no file has the id '${fileId}'` });
  if (file.purpose !== "batch") return wrong(`input_file_id: the purpose of the file must be "batch"`);
  const made = { ...by(asked), form: "openai", endpoint: endpoint as Endpoint, inputFileId: fileId } as const;
  const batch = await batches.create({ ...made, windowMs, metadata, outputKeepMs }, null);
  return isRefusal(batch) ? batch : json(shownBatch(batch));
};

const createdInline: Answer = async (asked, { batches }) => {
  let content: AsyncIterable<Uint8Array> | null = asked.request.body;
  if (asked.request.headers.has("content-encoding")) {
    const body = await asked.body();
    if (isRefusal(body)) return body;
    content = Readable.from([isLarge(body) ? body.body : new TextEncoder().encode(JSON.stringify(body.json))]);
  }
  if (content === null) return wrong("The request body must be a JSON object");
  const made = { ...by(asked), form: "anthropic", endpoint: "/v1/messages", inputFileId: null } as const;
  const batch = await batches.create({ ...made, windowMs: dayWindowMs, metadata: null, outputKeepMs: keepMs }, content);
  return isRefusal(batch) ? batch : json(shownBatch(batch));
};

const by = ({ asker, key, address }: KeptAsked) => ({
  account: asker.account,
  keyHash: key === null ? null : keyHashOf(key),
  address,
});

const results: Answer = async (asked, parts) => {
  const batch = await found("anthropic", asked, parts);
  if (isRefusal(batch)) return batch;
  if (!hasEnded(batch))
    return refuse("not_found", { reason: `The results of ${batch.id} are not there before it has ended` });
  const headers = { "content-type": "application/x-jsonl" };
  const file = parts.batches.resultsOf(batch);
  return new Response((await file.exists()) ? file.stream() : "", { headers });
};

const removed: Answer = async (asked, parts) => {
  const batch = await found("anthropic", asked, parts);
  if (isRefusal(batch)) return batch;
  if (!hasEnded(batch)) return wrong("A batch can be deleted once it has ended: cancel it first");
  await parts.batches.remove(batch.account, batch.id);
  return json({ id: batch.id, type: "message_batch_deleted" });
};

/** Null: it is none. */
function windowOf(window: unknown): Ms | null {
  const [, count, unit] = typeof window === "string" ? (/^([1-9]\d{0,3})([hd])$/.exec(window) ?? []) : [];
  const ms = count === undefined ? 0 : Number(count) * (unit === "h" ? hourMs : dayMs);
  return ms > 0 && ms <= windowMaxMs ? ms : null;
}

function isMetadata(metadata: unknown): metadata is Record<string, string> {
  if (!isRecord(metadata)) return false;
  const rows = Object.entries(metadata);
  return (
    rows.length <= metadataMax &&
    rows.every(([key, value]) => key.length <= 64 && typeof value === "string" && value.length <= 512)
  );
}

function keptFor(expires: unknown): Ms | null {
  if (expires === undefined || expires === null) return keepMs;
  const { anchor, seconds } = isRecord(expires) ? expires : {};
  const isKnown = anchor === "created_at" && Number.isInteger(seconds);
  return isKnown && (seconds as number) >= 3_600 && (seconds as number) <= 2_592_000
    ? (seconds as number) * 1000
    : null;
}

export const answers: Readonly<Record<string, Answer>> = {
  "POST /v1/batches": createdFromFile,
  "GET /v1/batches": listed("openai"),
  "GET /v1/batches/:id": shown("openai"),
  "POST /v1/batches/:id/cancel": cancelled("openai"),
  "POST /v1/messages/batches": createdInline,
  "GET /v1/messages/batches": listed("anthropic"),
  "GET /v1/messages/batches/:id": shown("anthropic"),
  "POST /v1/messages/batches/:id/cancel": cancelled("anthropic"),
  "GET /v1/messages/batches/:id/results": results,
  "DELETE /v1/messages/batches/:id": removed,
};
