// The routes of files, /v1/files and below, in the form that a client's headers ask for: OpenAI's or Anthropic's.
import type { Dialect } from "../dialects/dialect.ts";
import { isRefusal, refuse } from "../core/refusals.ts";
import type { Refusal } from "../core/types.ts";
import type { FilePage, Files, StoredFile } from "../files/files.ts";
import { unreadBodies } from "./arriving-bodies.ts";
import { idleTimeoutSeconds } from "./inference.ts";
import { boundaryOf, type TakenForm, takeForm } from "./multipart.ts";
import { requestAddress } from "./request-address.ts";
import type { StoredAction, StoredAsked } from "./stored-responses.ts";

/** What clients may upload files for; batches write `batch_output`. */
const purposes = ["batch", "user_data", "vision"] as const;
const expirySecondsMin = 3_600;
/** By the field that says it, OpenAI's and Anthropic's. */
const expirySecondsMax = { "expires_after[seconds]": 30 * 86_400, expires_in_seconds: 90 * 86_400 };
const filenameMaxLength = 255;
/** Of a body, beside its file: boundaries, heads and the other fields. */
const fieldsMaxBytes = 64 * 1024;
const valueMaxBytes = 1_024;

const noFiles = refuse("not_found", { reason: "Files are not kept here" });
const unknown = (id: string): Refusal => refuse("not_found", { reason: `No file with id '${id}' found` });
const invalid = (reason: string): Refusal => refuse("malformed", { reason });

// ---------------------------------------------------------------- the two forms

type Form = Readonly<{
  file(file: StoredFile): object;
  deleted(id: string): object;
  page(query: URLSearchParams): (FilePage & Readonly<{ isReversed: boolean }>) | Refusal;
  list(
    data: readonly object[],
    more: Readonly<{ first_id: string | null; last_id: string | null; has_more: boolean }>,
  ): object;
}>;

const openAi: Form = {
  file: ({ id, bytes, createdAt, expiresAt, filename, purpose }) => ({
    id,
    object: "file",
    bytes,
    created_at: Math.floor(createdAt / 1_000),
    // Whole seconds after its creation, as was asked for.
    expires_at: expiresAt === null ? null : Math.floor(createdAt / 1_000) + Math.round((expiresAt - createdAt) / 1_000),
    filename,
    purpose,
    status: "processed",
  }),
  deleted: (id) => ({ id, object: "file", deleted: true }),
  page(query) {
    const limit = limitOf(query, 10_000, 10_000);
    if (isRefusal(limit)) return limit;
    const order = query.get("order") ?? "desc";
    if (order !== "asc" && order !== "desc") return invalid("order must be asc or desc");
    return { limit, order, ...given("after", query), ...given("purpose", query), isReversed: false };
  },
  list: (data, more) => ({ object: "list", data, ...more }),
};

const anthropic: Form = {
  file: ({ id, bytes, createdAt, expiresAt, filename }) => ({
    type: "file",
    id,
    size_bytes: bytes,
    created_at: new Date(createdAt).toISOString(),
    expires_at: expiresAt === null ? null : new Date(expiresAt).toISOString(),
    filename,
    mime_type: Bun.file(filename).type.split(";")[0],
    downloadable: true,
  }),
  deleted: (id) => ({ id, type: "file_deleted" }),
  page(query) {
    const limit = limitOf(query, 20, 1_000);
    if (isRefusal(limit)) return limit;
    const before = query.get("before_id");
    if (before !== null) return { limit, order: "asc", after: before, isReversed: true };
    // Its later clients page by `page`.
    const after = { ...given("page", query, "after"), ...given("after_id", query, "after") };
    return { limit, order: "desc", ...after, isReversed: false };
  },
  list: (data, more) => ({ data, ...more, next_page: more.has_more ? more.last_id : null }),
};

const formOf = ({ name }: Pick<Dialect, "name">): Form => (name === "messages" ? anthropic : openAi);

const given = (name: string, query: URLSearchParams, as = name) =>
  query.get(name) === null ? {} : { [as]: query.get(name)! };

function limitOf(query: URLSearchParams, otherwise: number, most: number): number | Refusal {
  const written = query.get("limit");
  if (written === null) return otherwise;
  const limit = /^\d{1,5}$/.test(written) ? Number(written) : 0;
  return limit >= 1 && limit <= most ? limit : invalid(`limit must be a whole number from 1 to ${most}`);
}

// ---------------------------------------------------------------- uploads

const upload: StoredAction = async (asked) => {
  const { files, account, request, dialect, isStillAllowed, connection } = asked;
  if (files === null) return noFiles;
  const boundary = boundaryOf(request.headers.get("content-type"));
  if (boundary === null || request.body === null) return invalid("A file is uploaded as multipart/form-data");
  const { fileBytesMax } = files;
  if (Number(request.headers.get("content-length") ?? 0) > fileBytesMax + fieldsMaxBytes) {
    return refuse("file_too_large", { reason: `A file may have ${fileBytesMax} bytes` });
  }
  const opened = await files.upload(account);
  if (isRefusal(opened)) return opened;
  await using content = opened;
  let form: TakenForm | Refusal;
  unreadBodies.count += 1;
  try {
    form = await takeForm(request.body, boundary, content, valueMaxBytes);
  } finally {
    unreadBodies.count -= 1;
  }
  if (isRefusal(form)) return form;
  const { filename } = form;
  const settings = settingsOf(new Map(form.fields), asked, files);
  if (isRefusal(settings)) return settings;
  if (filename === null) return invalid("file is required: a part with the content of a file");
  if (filename.length > filenameMaxLength || /[\x00-\x1f\x7f]/.test(filename)) {
    return invalid(`file: its name may have ${filenameMaxLength} characters, and no control characters`);
  }
  const refused = await isStillAllowed(); // its key may have been revoked during the upload
  if (refused !== null) return refused;
  connection?.timeout(request, 0); // a disk may take minutes over gigabytes
  try {
    const file = await content.keep({ filename: filename === "" ? "file" : filename, ...settings });
    return isRefusal(file) ? file : JSON.stringify(formOf(dialect).file(file));
  } finally {
    connection?.timeout(request, idleTimeoutSeconds);
  }
};

function settingsOf(
  fields: ReadonlyMap<string, string>,
  { dialect, now }: StoredAsked,
  files: Files,
): Readonly<{ purpose: string; expiresAt: number }> | Refusal {
  const purpose = fields.get("purpose") ?? (formOf(dialect) === anthropic ? "user_data" : null);
  const listed = purposes.map((name) => `'${name}'`).join(", ");
  if (purpose === null) return invalid(`purpose is required: one of ${listed}`);
  if (!purposes.some((name) => name === purpose)) {
    return invalid(`purpose: '${purpose}' is not served here; it must be one of ${listed}`);
  }
  const name = fields.has("expires_in_seconds") ? "expires_in_seconds" : "expires_after[seconds]";
  const [anchor, written] = [fields.get("expires_after[anchor]"), fields.get(name)];
  if (anchor === undefined && written === undefined) return { purpose, expiresAt: files.usualExpiry() };
  if (name !== "expires_in_seconds" && anchor !== "created_at") {
    return invalid("expires_after[anchor] must be created_at");
  }
  const [least, most] = [expirySecondsMin, expirySecondsMax[name]];
  const seconds = /^\d{1,7}$/.test(written ?? "") ? Number(written) : 0;
  if (seconds < least || seconds > most) {
    return invalid(`${name} must be a whole number from ${least} to ${most}`);
  }
  return { purpose, expiresAt: now() + seconds * 1_000 };
}

// ---------------------------------------------------------------- what is there

const ofFile =
  (act: (asked: StoredAsked, files: Files, file: StoredFile) => Promise<string | Response | Refusal>): StoredAction =>
  async (asked) => {
    const { files, account, id } = asked;
    const file = (await files?.get(account, id)) ?? null;
    return file === null || files === null ? unknown(id) : act(asked, files, file);
  };

const list: StoredAction = async ({ files, account, request, dialect }) => {
  if (files === null) return noFiles;
  const form = formOf(dialect);
  const page = form.page(requestAddress(request).searchParams);
  if (isRefusal(page)) return page;
  const found = await files.list(account, { ...page, limit: page.limit + 1 });
  const shown = found.slice(0, page.limit);
  if (page.isReversed) shown.reverse();
  const ends = { first_id: shown[0]?.id ?? null, last_id: shown.at(-1)?.id ?? null };
  return JSON.stringify(form.list(shown.map(form.file), { ...ends, has_more: found.length > page.limit }));
};

/** As a download alone: on the gateway's own pages an uploaded page must never run. */
async function contentOf({ stem }: StoredAsked, files: Files, file: StoredFile): Promise<Response | Refusal> {
  const content = files.read(file);
  if (!(await content.exists())) {
    return refuse("not_found", { reason: `The content of the file '${file.id}' is not in the folder of files` });
  }
  return new Response(content, {
    headers: {
      "content-type": "application/octet-stream",
      "content-disposition": `attachment; filename*=UTF-8''${encodeURIComponent(file.filename.toWellFormed())}`,
      "x-content-type-options": "nosniff",
      "x-request-id": `req_${stem}`,
      "request-id": `req_${stem}`,
    },
  });
}

export const actions: Readonly<Record<string, StoredAction>> = {
  "POST ": upload,
  "GET ": list,
  "GET /:id": ofFile(async ({ dialect }, _, file) => JSON.stringify(formOf(dialect).file(file))),
  "DELETE /:id": async ({ files, account, id, dialect }) =>
    (await files?.remove(account, id)) === true ? JSON.stringify(formOf(dialect).deleted(id)) : unknown(id),
  "GET /:id/content": ofFile(contentOf),
};
