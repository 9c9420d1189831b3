// No text of a client, a node or a page makes a regular expression of ours slow. All of them are found in the sources; each
// sees no text from outside, for a reason that stands here, or is tried on 20 KB, or 1 MB, of what is worst for it.
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { queryRun, unspacedRun } from "../src/store/search-index.ts";
import { longForm } from "./fixtures/optional.ts";
import { expressionsOf, slowestMs } from "./fixtures/regular-expressions.ts";

const root = join(import.meta.dir, "../src");
const cpuMaxMs = 50;
/** What is not linear takes seconds for either. */
const lengthDefault = longForm ? 1_000_000 : 20_000;
/** That all texts have, in steps; the slowest of them are made longer. */
const shortLengths = longForm ? [14, 18, 22, 26, 500, 1_000, 2_000, 8_000] : [14, 26, 500, 2_000];
const timeLimit = 120_000;

/** `text`: as it stands in the source, or how that begins. `seen`: what is tried, or why nothing is. */
type Entry = Readonly<{ text: string; seen: RegExp | string; length: number }>;

/** The text has at most so many characters, because something before it sees to that. */
const within = (length: number, seen: RegExp): Entry => ({ text: String(seen), seen, length });
const own = (why: string, expression: RegExp): Entry => ({ text: String(expression), seen: why, length: 0 });
const made = (text: string, seen: RegExp | string): Entry => ({ text, seen, length: lengthDefault });

/** By file: why none of its expressions sees text from outside, or all of them. */
const listed: Readonly<Record<string, string | readonly (RegExp | Entry)[]>> = {
  "notices/certificate.ts": "addresses of the configuration",
  "notices/letter.ts": "the operator's templates",
  "notices/smtp.ts": [/[\p{Cc}\u2028\u2029]+/gu],
  "config/mail.ts": "the operator's configuration",
  "account/people/mails.ts": [/^(\d{1,15})\.(\d{1,15})\.([\w-]{0,400})\.[\w-]{43}$/],
  "account/sign-in/access-links.ts": [/^[A-Za-z0-9_-]{43}$/],
  "account/people/account-keys.ts": [/[\p{C}\p{Zl}\p{Zp}]/u],
  "account/sign-in/devices.ts": [/[\s-]/g],
  "batches/answers.ts": [/^\d{1,4}$/, /^([1-9]\d{0,3})([hd])$/],
  "batches/batches.ts": [/^(?:msg)?batch_[0-9A-Za-z]{24}$/, /^\d+$/],
  "batches/line-error.ts": [/[\n\r]/, /[\n\r]/g],
  "batches/lines.ts": [/^[a-zA-Z0-9_-]{1,64}$/],
  "commands/init.ts": "what the operator typed, and addresses of the machine",
  "commands/login.ts": "the gateway that the machine's owner named",
  "console/device-flow.ts": [/[\p{C}\p{Zl}\p{Zp}]/gu],
  "files/audio-length.ts": [
    within(
      4, // of a file
      /^(?:RIFF|RF64|fLaC)/,
    ),
  ],
  "http/stored-responses.ts": [/^(?:-1|\d{1,9})$/],
  "nodes/voices/voice-answer.ts": [
    within(
      131_072, // a node's head
      /^text\/event-stream\b/i,
    ),
    within(
      131_072, // a node's head
      /^(?:application\/json|text\/)/i,
    ),
  ],
  "office/verbs/report.ts": [/^\d{4}-\d\d-\d\d$/, /^\d{4}-\d\d$/],
  "files/file-store.ts": [own("names that we gave", /^[0-9A-Za-z]{2}$/)],
  "core/toml-text.ts": [/[\u007f-\u009f\u2028\u2029]/g],
  "config/file-changes.ts": [/^(\w*)\.?/],
  "config/toml-edit.ts": "the operator's configuration",
  "core/end-user.ts": [within(128, /[\p{C}\p{Zl}\p{Zp}]/gu)], // endUserNameMaxLength
  "account/people/accounts.ts": [
    /^deleted-[\d-]+@invalid$/i,
    /[^\x21-\x7e]/,
    within(64, /^[\p{L}\p{N}](?:[\p{L}\p{N} ._-]*[\p{L}\p{N}])?$/u), // teamNameMaxLength
    within(
      254, // emailMaxLength
      /^[\w.!#$%&'*+/=?^`{|}~-]+@[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$/i,
    ),
  ],
  "account/sign-in/known-browsers.ts": [/^(\d{1,15})\.([A-Za-z0-9_-]{16})\.([A-Za-z0-9_-]{43})$/],
  "account/money/price.ts": [within(40, /0+$/)], // digits of a sum
  "account/people/keys.ts": [/^sk-tg-[0-9A-Za-z]{43}$/],
  "account/request-row.ts": [/^(\d{1,16}(?:\.\w{1,40})?)-(\d{1,16})$/, /^[1-5](?:xx|\d\d)$/, /^\d{1,15}$/],
  "account/sign-in/operator-tokens.ts": [/^[A-Za-z0-9_-]{47}$/],
  "account/sign-in/sessions.ts": [/^[A-Za-z0-9_-]{43}$/],
  "account/sign-in/sign-in-tries.ts": [/[A-Z]/g, /[.:]/, /^::ffff:[\d.]+$/i, /^::ffff:/i, /^0+(?=.)/],
  "build.ts": "our own sources",
  "build/mach-o-signature.ts": "programs that we build",
  "commands/command.ts": "the operator's command line",
  "commands/doctor-config.ts": "the operator's configuration",
  "commands/doctor-machine.ts": "the system's own files",
  "server/kept/scheduled-backups.ts": "names of files in the data folder",
  "commands/complete.ts": "the operator's command line",
  "commands/help.ts": "our own words",
  "commands/new-password.ts": "the operator's terminal",
  "commands/search.ts": "results shown to the operator who asked",
  "server/console.ts": "our own files",
  "gateway.ts": [/^[0-9]{1,7}$/],
  "office/link-expiry.ts": [/^(\d{1,5})([hd])$/],
  "office/operators-api.ts": [/^Bearer +(\S+)$/i, /^-?\d{1,15}$/],
  "office/operators-description.ts": "names of our own verbs",
  "store/backup/exported.ts": "names of our own columns",
  "store/questions.ts": "our own questions",
  "store/changes/record.ts": "names of our own columns",
  "core/camel.ts": "names of our own columns",
  "core/since.ts": [/^(\d{1,5})([mhdw])$/],
  "server/fleet/simulate.ts": [/^[+-]\d{1,3}$/],
  "core/iso-time.ts": [/^(\d{4}-\d\d-\d\d)(?:T(\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)(Z|[+-]\d\d:?\d\d)?)?$/],
  "core/catalog.ts": [/^[A-Za-z0-9][\w.:@/+-]*$/],
  "server/fleet/model-report.ts": [/^[!-~][ -~]*$/],
  "server/fleet/served-models.ts": [/[\s\p{Cc}]/u],
  "server/fleet/suggested-models.ts": [/^[^\s\p{Cc}]+$/u, /^[\w.:-]+$/],
  "config/kinds.ts": "the operator's configuration",
  "config/database-url.ts": "the operator's configuration",
  "core/database-addresses.ts": "the operator's configuration",
  "config/options.ts": "the machine's own name",
  "server/fleet/shared-nodes.ts": "the operator's configuration",
  "config/webhooks.ts": "the operator's configuration",
  "console/bundle.ts": "our own sources",
  "tollgate.mjs": "our own sources",
  "console/console.ts": [/^[0-9]{1,15}$/, /^application\/json(?:$|[;\s])/i],
  "core/phrases.ts": [
    /([,;] )/,
    /^\d{1,15}$/,
    own("our words", /\p{Script=Han}/u),
    own("our catalog", /\{(\w{1,20})\}/),
  ],
  "core/csv.ts": [/^[\t\r\n]/, within(2, /[\s"]/), /[",\r\n]/],
  "console/routes/provider-routes.ts": [/^\/[^\\\p{Cc}]*$/u],
  "core/address.ts": [
    /^([0-9a-fA-F.:]+)(?:\/([0-9]{1,3}))?$/,
    /^(?:0|[1-9][0-9]{0,2})$/,
    /^(.*:)([0-9]+\.[0-9.]+)$/,
    /^[0-9a-fA-F]{1,4}$/,
  ],
  "http/forwarded-address.ts": [
    /^\[([^\]]*)\](?::\d+)?$/,
    /^([\d.]+):\d+$/,
    /^\d{1,3}(?:\.\d{1,3}){3}$/,
    /^[0-9a-f:.]{2,45}$/i,
  ],
  "console/stripe.ts": [/^[1-9][0-9]{0,14}$/],
  "console/web/pages/account.tsx": [
    /Edg\//,
    /OPR\//,
    /Firefox\//,
    /Chrome\//,
    /Safari\//,
    /iPhone|iPad/,
    /Android/,
    /Windows/,
    /Mac OS X/,
    /Linux/,
  ],
  "console/web/pages/operator/account-changes.tsx": [/^deleted-[\d-]+@invalid$/i],
  "console/web/pages/operator/config-form.tsx": "the operator's configuration",
  "console/web/pages/operator/models.tsx": [/(?<=[-/:_@])/],
  "console/web/parts/data-table.tsx": "the address of the page",
  "console/web/over-time.ts": "the address of the page",
  "console/web/pages/operator/accounts.tsx": "the address of the page",
  "console/web/pages/playground/chat-completions.ts": [/^audio\/(?:x-)?/, /[^a-z0-9]/g],
  "console/web/pages/playground/conversation-list.tsx": [within(1_000, /[^\p{L}\p{N}]+/gu)],
  "console/web/pages/playground/export.ts": [
    within(1_000, /\s+/g),
    /<(?=\/?(?:details|summary))/gi,
    /[[\]\\]/g,
    /`{3,}/g,
  ],
  "console/web/parts/shell.tsx": "the browser's own name of its network",
  "store/usage/accounts-page.ts": "names of columns",
  "console/web/palette/door.tsx": "the browser's own name of its machine",
  "console/web/palette/fuzzy.ts": "what somebody types",
  "console/web/palette/items.ts": [/^account (\d{1,15}) (\S+)$/],
  "console/web/palette/palette.tsx": "what somebody types",
  "console/web/pages/playground/tree.ts": [within(1_000, /\s+/g)],
  "console/web/pages/playground/pictures.tsx": [/^[^,]*,/],
  "console/web/pages/playground/request-code.ts": [
    /^( *)"([A-Za-z_$][\w$]*)":/gm,
    /^(?:data:[^,]*;base64,)?[A-Za-z0-9+/=]{200,}$/,
  ],
  "console/web/parts/code-block.tsx": "names of the highlighter's kinds",
  "console/web/highlight.ts": [within(3_000, /\S{200}/), within(3_000, /[^\n]{1000}/), /[([{<]/],
  "console/web/parts/formula-markdown.ts": [/\d/, /\\(?:[gex]?def|let|futurelet|(?:new|renew|provide)command)/],
  "console/web/parts/markdown.tsx": [
    /\s/,
    /&(amp|lt|gt|quot|#39);/g,
    /^(?:https?:|ftp:|www\.)/i,
    /[\\<![`*_~]|https?:\/\/|ftp:\/\/|www\.|(?<! ) {2,}\n/gi,
    /^`+/,
  ],
  "console/web/parts/pieces.ts": [
    /^(?:\s|[-*+]\s|\d{1,9}[.)]\s)/,
    within(3_000, /^\[([^\][\\]{1,100})\]:[ \t]{0,9}(\S{1,2000})/),
    /^[-:| \t]*$/,
    within(3_000, /^( {0,12})(`{3,100}|~{3,100})([^\n]{0,200})\n?$/),
    /\s/,
  ],
  "console/web/request.ts": [/filename="([^"]+)"/],
  "dialects/responses/custom-tool-input.ts": [/^\s*\{\s*"input"\s*:\s*"/, /\s+/g, /^\\ud[89ab]/i],
  "dialects/audio/speech.ts": [
    within(
      131_072, // a node's head
      /^audio\/[\w.+-]{1,40}(?:; ?[\w-]{1,20}=[\w-]{1,20}){0,4}$/,
    ),
  ],
  "dialects/audio/transcriptions.ts": [
    within(
      16_384, // valueMaxBytes
      /^[\w.[\]-]{1,64}$/,
    ),
    within(
      16_384, // valueMaxBytes
      /^(?:true|false|1|0)$/i,
    ),
    within(
      16_384, // valueMaxBytes
      /^(?:true|1)$/i,
    ),
  ],
  "dialects/request/media-part.ts": [
    /^[a-z0-9]{1,16}$/,
    /[^A-Za-z0-9+/=_-]/,
    /^data:/i,
    /^data:(?![^,]*;\s*base64\s*,)[^,]*,/i,
    /^\s*https?:/i,
    /^\s*[a-z][a-z0-9+.-]*:/i,
    /^[0-9a-f]{2}$/i,
  ],
  "config/telemetry.ts": "the operator's configuration, and patterns of the operator's own",
  "dialects/messages/call-input.ts": [
    /[ \t\r\n]/,
    /[-+.\w]/,
    /[-+.\w]+/y,
    within(256, /^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?)$/), // numberMaxLength
    /\\(?:["\\/bfnrt]|u(?![dD][89a-fA-F])[\da-fA-F]{4}|u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2})/y,
    /["\\\x00-\x1f]/g,
    /^(?:null)?$/,
  ],
  "dialects/request/system-text.ts": [/^x-anthropic-billing-header[^\n]*\n*/],
  "dialects/responses/offered-tools.ts": [/[^a-zA-Z0-9_-]/g],
  "dialects/stored-responses.ts": [/^[a-z]+_([0-9A-Za-z]+)_(?:in)?\d+$/, /_in\d+$/],
  "docs/guide.ts": "our own chapters",
  "docs/guide-page.ts": "our own chapters",
  "docs/highlighted.ts": "our own code samples",
  "docs/markup.ts": "our own descriptions",
  "docs/schema-view.ts": "our own schemas",
  "core/file-text.ts": [/[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]/],
  "http/content-encoding.ts": [/;q=0(?:\.0*)?$/],
  "http/cross-origin.ts": [/^x-tollgate-/i],
  "http/documentation.ts": [
    within(260, /^[\w.:[\]-]+$/), // hostMaxLength
    own("our own description", /\bcore-3\b(?![.-])/g),
  ],
  "http/models.ts": [own("digits of a price", /\.?0+$/)],
  "http/key-headers.ts": [/^bearer +/i],
  "http/files.ts": [/[\x00-\x1f\x7f]/, /^\d{1,5}$/, /^\d{1,7}$/],
  "http/multipart.ts": [
    /^content-disposition:/i,
    within(4_096, /;\s*([\w*-]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s;"]*))/g), // headMaxBytes
    /\\(["\\])/g,
  ],
  "http/metrics/metric.ts": [/[\\"\n]/, /\\/g, /"/g, /\n/g],
  "http/metrics/metrics-access.ts": [/^bearer +/i],
  "http/openapi/shape.ts": "our own schemas",
  "threads/pass-on.ts": [/[^\t\x20-\x7e\x80-\xff]/],
  "http/request-address.ts": [/^https?:\/\/[^/?#]*/],
  "http/sockets/client-socket.ts": [/^[\w.-]{1,256}$/],
  "http/stored-responses-page.ts": [/^\d{1,3}$/],
  "core/image-header.ts": [/^data:/i, /;base64$/i],
  "core/visible.ts": [/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g],
  "core/log.ts": [/[\s"=]|^$/, /\b(?:sk-[A-Za-z0-9_-]{16,}|[Bb]earer +[A-Za-z0-9._~+/-]{8,}=*)/g],
  "main.ts": "our own messages",
  "core/this-machine.ts": [/^(?:localhost|127\.[\d.]+|\[?::1\]?)$/, /^(?:::ffff:)?127\.|^::1$/],
  "core/schema-errors.ts": [/^[\w-]+$/, own("descriptions in our own schemas", /^[A-Z].*\.$/)],
  "nodes/client/connection.ts": [/\btimeout=(\d+)/i, /\bmax=(\d+)/i],
  "nodes/client/dial.ts": [/^\[(.*)\]$/],
  "nodes/demo/demo-answer.ts": [
    /\s?\S{1,6}|\s/gu,
    /([a-z])([A-Z])/g,
    /[^a-z0-9]+/,
    /(?<![\p{L}-])(\p{Lu}[\p{L}-]{1,60})\s{1,9}(?:and|or|versus|vs)\s{1,9}(\p{Lu}[\p{L}-]{1,60})/u,
    /\b(?:in|for|of|at|about|called|named)\s{1,9}(\p{Lu}[\p{L}-]{1,60})/u,
    /^(?:q|query|question|text|prompt|input|search|search_query)$/i,
    /^\[(\d{1,9})\] (.{1,500})\nhttps?:\S/gm,
    /^<<<(\w{1,60})\n/m,
  ],
  "nodes/demo/demo-pattern.ts": [made("RegExp(`^${node.raw}$`", "of a client's pattern: one class, on one character")],
  "nodes/engine-load.ts": [/[{,]num_gpu_blocks="([0-9]+)"/, /[{,]block_size="([0-9]+)"/],
  "nodes/engine-routes.ts": [own("the operator's configuration", /\/v1$/), /^num_ctx\s{1,99}(\d{1,15})$/m],
  "nodes/failure/failure.ts": [
    within(64 * 1_024, /overloaded|queue is full|server busy|rate.?limit/i),
    // of nodeErrorTextMaxLength
    /model/i,
    /not (?:exist|found)/i,
    /Invalid model name passed|Server is pinned to/,
  ],
  "nodes/failure/overflow.ts": [
    /request \((?<prompt>\d{1,15}) tokens\) exceeds the available context size \((?<context>\d{1,15}) tokens\)/,
    /maximum context length is (?<context>\d{1,15}) tokens.{0,60}prompt contains at least (?<least>\d{1,15}) input tokens/s,
    /maximum context length is (?<context>\d{1,15}) tokens and your request has (?<prompt>\d{1,15}) input tokens/,
    /passed (?<prompt>\d{1,15}) input tokens and requested (?<output>\d{1,15}) output tokens.{0,200}context length is only (?<context>\d{1,15})/s,
    /passed \d{1,15} input characters and requested (?<output>\d{1,15}) output tokens.{0,200}context length is only (?<context>\d{1,15})/s,
    /max_(?:completion_)?tokens=(?<output>\d{1,15})\s{0,9}cannot be greater than max_model_len=(?<context>\d{1,15})/,
    /max_(?:completion_)?tokens=\d{1,15}\s{0,9}cannot be greater than/,
    /maximum context length (?:is|of) (?<context>\d{1,15}) tokens.{0,40}requested (?:about |a total of )?(?<total>\d{1,15}) tokens[:,]? \(?(?<prompt>\d{1,15}) (?:tokens )?(?:in|from) the /s,
    /maximum context length is (?<context>\d{1,15}) tokens.{0,40}requested (?<prompt>\d{1,15}) tokens in the messages/s,
    /maximum context length is (?<context>\d{1,15}) tokens.{0,200}?requested (?:about )?(?<total>\d{1,15}) tokens/s,
    /maximum context length is (?<context>\d{1,15})/,
    /input \((?<prompt>\d{1,15}) tokens\) is too large to process.{0,80}batch size: (?<context>\d{1,15})/s,
    /input \((?<prompt>\d{1,15}) tokens\) is longer than the model's context length \((?<context>\d{1,15})/,
    /token count exceeds the model's maximum context length of (?<context>\d{1,15})/,
    /max_(?:completion_)?tokens is too large: (?<output>\d{1,15})\.\s?This model supports at most (?<context>\d{1,15}) completion tokens/,
    /requested tokens \((?<prompt>\d{1,15})\) exceed context window of (?<context>\d{1,15})/i,
    /prompt is longer than the context length/,
    /tokens to keep from the initial prompt is greater than the context length/,
    /tokens \+ .max_new_tokens. must be <= (?<context>\d{1,15})\. Given: (?<prompt>\d{1,15}) .inputs. tokens and (?<output>\d{1,15})/s,
    /tokens \+ .max_new_tokens. must be <= (?<context>\d{1,15})\. Given: (?<total>\d{1,15})/s,
    /must have less than (?<context>\d{1,15}) tokens\. Given: (?<prompt>\d{1,15})/,
    /prompt length \((?<prompt>\d{1,15})(?:\.\d{1,15})?\).{0,200}should not exceed max_\w{1,40} \((?<context>\d{1,15})\)/s,
    /ContextWindowExceededError/,
    /context (?:length|size|window)|longer than the model|max_(?:seq_len|num_tokens|model_len)/i,
  ],
  "nodes/failure/node-words.ts": [
    within(8 * 1_024, /['"]?input['"]?:/), // nodeErrorTextMaxLength
    within(8 * 1_024, /\s/),
    within(8 * 1_024, /[/\\]/),
    // wordMaxLength
    within(40, /^[a-z('"]+\/[a-z)'".,;:]+$/i),
    within(40, /\w\.\w+\D/),
    within(40, /\w\.\w+\.\w/),
    within(40, /\w:\w|::/),
    within(40, /^\W+|\W+$/g),
    within(40, /^['"`]/),
    within(40, /^[A-Za-z]?[a-z]+$/),
  ],
  "nodes/client/framing.ts": [
    /^HTTP\/1\.([01]) ([1-9][0-9]{2})(?: [\t\x20-\x7e\x80-\xff]*)?$/,
    /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/,
    /[\x00-\x08\x0a-\x1f\x7f]/,
    /^[0-9]{1,15}$/,
  ],
  "nodes/generation.ts": [/^text\/event-stream(?:$|[;\s])/i],
  "nodes/health/look.ts": [
    /"data":\s?(?:\[\]|null)/,
    /NOTFOUND|EAI|DNS/,
    /EPROTO|WRONG_VERSION/,
    /SSL|TLS|certificate/,
  ],
  "nodes/inputs/list-scanner.ts": [within(512, /"(?:data|results)"\s{0,99}:\s{0,99}$/)], // twice listBeginsWithin
  "nodes/inputs/vector.ts": [within(192 * 1_024, /^"[A-Za-z0-9+/]+={0,2}"$/)], // inputAnswerMaxBytes
  "nodes/inspect.ts": "the operator's configuration",
  "nodes/json.ts": [/-?(?:NaN|Infinity)/g],
  "nodes/managed/managed-node.ts": "the operator's configuration",
  "nodes/model-facts.ts": [
    within(
      512, // nodeModelNameMaxLength
      /embed|rerank|(?:^|\/)(?:bge|gte|e5|all-minilm|paraphrase)[-_]/i,
    ),
    within(
      512, // nodeModelNameMaxLength
      /whisper|parakeet|canary|moonshine|transcribe/i,
    ),
    within(
      512, // nodeModelNameMaxLength
      /kokoro|piper|(?:^|[-_/])tts(?:[-_]|$)/i,
    ),
  ],
  "nodes/named-call.ts": [
    /^\s{0,99}\{\s{0,99}"name"\s{0,99}:\s{0,99}("(?:[^"\\]|\\.){0,1024}")\s{0,99},\s{0,99}"arguments"\s{0,99}:\s{0,99}(?=\{)/,
  ],
  "nodes/node-endpoint.ts": "the operator's configuration",
  "nodes/ollama.ts": [
    within(
      1_000, // wordsMaxLength
      /input length exceeds the context length|prompt is longer than the context length/,
    ),
  ],
  "nodes/reader.ts": [/^(abort|aborted|error|cancelled|canceled)$/i],
  "nodes/fast-path/template.ts": [
    /"id":[\t ]?"[\x20\x21\x23-\x5b\x5d-\x7e]+"(?=[\t ]*[,}])/,
    /"created":[\t ]?(?:0|[1-9][0-9]{0,14})(?=[\t ]*[,}])/,
    /:[\t ]?(0|[1-9][0-9]{0,14})(?=[\t ]*[,}])/g,
    within(64, /[0-9]+$/), // what the expression before it found
  ],
  "nodes/think-tags.ts": [/\\u003c/i],
  "nodes/token-count.ts": [
    within(512, /"(?:count|input_tokens|prompt_eval_count)"\s*:\s*(\d{1,9})\s*[,}]/), // twice endBytes
    within(512, /^\s*\{\s*"tokens"\s*:\s*\[\s*\d/), // twice endBytes
    within(512, /\d\s*\]\s*\}\s*$/), // twice endBytes
  ],
  "nodes/grammar-pattern.ts": [
    within(2, /^[A-Za-z0-9 _:,@/-]$/), // one character
    within(4, /^[0-9A-Fa-f]{2,4}$/),
    within(20, /^(\d{1,6})(,?)(\d{0,6})$/),
    within(2, /^[A-Za-z0-9]$/), // one character
  ],
  "nodes/node-schema.ts": [/^\w+$/],
  "core/refusals.ts": "our own messages",
  "core/request-log.ts": [/^(?:[a-z]+[_-])?([0-9A-Za-z]{6,24})$/],
  "core/server-tool-name.ts": [/[^A-Za-z0-9_-]/g],
  "store/responses/input-items.ts": [/_in(\d{1,9})$/],
  "store/beside-ledger.ts": "error codes of SQLite",
  "store/folder/data-folder.ts": "names of files in the data folder",
  "store/backup/restore.ts": "our own clock",
  "store/postgres/connection.ts": [/["\\]/g, /^[0-9A-Z]{5}$/],
  "store/postgres/response-tables.ts": "error codes of the operator's database",
  "store/postgres/usage.ts": [/[A-Z]/g],
  "store/postgres/gone-lanes.ts": "error codes of the operator's database",
  "store/search-index.ts": [
    /\.[^./]*$/,
    made("RegExp(`[${unspacedScripts}]+`", unspacedRun),
    made("RegExp(`[${unspacedScripts}]+|", queryRun),
    /[\p{L}\p{N}]/u,
  ],
  "telemetry/tracer.ts": [/"message":"([^"]+)"/, /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/],
  "tokens/character-class.ts": "Unicode itself",
  "tokens/render.ts": [/^data:/i],
  "tokens/sequences.ts": "files that come with the program",
  "config/toml-lines.ts": "the operator's configuration",
  "tools/format/answer-validator.ts": [
    /draft-0?[3467]\b/,
    made("RegExp(pattern, flags)", "of a client's schema: in a process of its own, with a bound on its time"),
  ],
  "tools/format/linear-pattern.ts": [
    made("RegExp(`^(?:${raw})$`", "of a client's pattern: one class, on one character"),
  ],
  "tools/search/citations.ts": [
    within(42, /^([[【])(\s*\d+(?:\s*[,;–-]\s*\d+)*\s*)((?:†.*)?)([\]】])$/), // markMaxLength and its brackets
    within(42, /(\d+)\s*[–-]\s*(\d+)/g),
    within(32, /(?:(?<![\p{L}\p{N}_'’])[a-z]|[A-Za-z0-9]_[A-Za-z0-9]+)(?:\[\w*\])*$/u), // beforeMaxLength
    within(32, /(?:^|\n) *~*$/),
    /[\s\d,;†–-]/,
    /[[【`~]/,
    /[–-]/,
    /\d+/g,
  ],
  "tools/media/page-text.ts": [/\s+/g, /\n (?! )/g, /\n{3,}/g],
  "tools/fetch/public-address.ts": [own("names of our own network interfaces", /%.*$/)],
  "tools/fetch/public-destination.ts": [
    /^[^.]*$|(?:^|\.)(?:localhost|local|internal|home\.arpa|onion|invalid|test|example|alt)$/,
    /^\[(.*)\]$/,
    /\.$/,
  ],
  "tools/fetch/public-fetch-client.ts": [/^\s*charset\s*=\s*"?([^"\s]+)"?\s*$/],
  "tools/search/brave.ts": [/\s+/, /<\/?[a-z][^<>]*>/gi],
  "tools/search/file-text.ts": "the operator's own files, read in a Worker, their first 20,000 characters",
  "tools/search/pages.ts": [
    within(1_024, /<meta[^<>]+charset\s*=\s*["']?([\w-]{1,40})/i), // the first kilobyte of a page
  ],
  "tools/search/web-search.ts": [/\s+/g],
  "tools/untrusted-text.ts": [
    /<(?=\||｜)/g,
    /<(?=\/?(?:s|bos|eos|think|thinking|tools?|tool_\w+|function(?:_\w+)?|system|start_of_turn|end_of_turn|im_\w+)>)/gi,
    /\[(?=\/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_\w+)\])/g,
    /\s+/g,
  ],
  "tools/search/web-search-tool.ts": [/^https?:\/\//, /^\*\./],
};

const entriesOf = (path: string): readonly Entry[] => {
  const entries = listed[path] ?? [];
  if (typeof entries === "string") return [];
  return entries.map((entry) => (entry instanceof RegExp ? within(lengthDefault, entry) : entry));
};

/** As the transpiler writes it. */
const ascii = (text: string): string =>
  text
    .replace(/[^\x00-\x7f]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`)
    .toLowerCase();

function unlistedIn(path: string, text: string): string[] {
  if (typeof listed[path] === "string") return [];
  const known = entriesOf(path).map((entry) => ascii(entry.text));
  const isKnown = (found: string) =>
    known.some((text) => (found.startsWith("/") ? found === text : found.startsWith(text)));
  return expressionsOf(path, text).filter((found) => !isKnown(ascii(found)));
}

/** Entries whose expression the file has no longer. */
function staleIn(path: string, text: string): string[] {
  const found = expressionsOf(path, text).map(ascii);
  if (typeof listed[path] === "string") return found.length === 0 ? ["all"] : [];
  const isFound = (known: string) =>
    found.some((each) => (known.startsWith("/") ? each === known : each.startsWith(known)));
  return entriesOf(path)
    .map((entry) => entry.text)
    .filter((known) => !isFound(ascii(known)));
}

const paths = [...new Bun.Glob("**/*.{ts,tsx,js,mjs}").scanSync({ cwd: root })].sort();

test("every regular expression of the sources is listed", () => {
  const unlisted = paths.flatMap((path) =>
    unlistedIn(path, readFileSync(join(root, path), "utf8")).map((found) => `${path}: ${found}`),
  );
  expect(unlisted).toEqual([]);
});

test("every entry is an expression of the sources", () => {
  const gone = Object.keys(listed).filter((path) => !paths.includes(path));
  const stale = Object.keys(listed).flatMap((path) =>
    gone.includes(path)
      ? []
      : staleIn(path, readFileSync(join(root, path), "utf8")).map((entry) => `${path}: ${entry}`),
  );
  expect([...gone, ...stale]).toEqual([]);
});

test.each([
  ["a literal", 'const a = b / 2; if (/x+y/.test("/")) c = `${d.replace(/"/g, `}`)} /no/`;', ["/x+y/", '/"/g']],
  ["one behind a condition", "if (a) /b/.exec(c); else /d/.exec(c);", ["/b/", "/d/"]],
  [
    "one that is made",
    'const a = new RegExp(`${b}+`, "g"); const c = RegExp("d");',
    ['RegExp(`${b}+`, "g")', 'RegExp("d")'],
  ],
  ["none", "const a = (b) / c / d; // /e/\nconst f = g[0] / h / i; /* /j/ */", []],
])("%s is found", (_, text, found) => {
  expect(expressionsOf("a.js", text)).toEqual([...found]);
});

const tried = Object.keys(listed).flatMap((path) =>
  entriesOf(path).flatMap(({ seen, length }) =>
    typeof seen === "string" ? [] : [[`${path} ${String(seen)}`, seen, length] as const],
  ),
);

describe("takes time in proportion to the text", () => {
  test.each(tried)(
    "%s",
    (_, expression, length) => {
      const { ms, text } = slowestMs(expression, length, cpuMaxMs, shortLengths);
      expect({ ms: Math.max(ms, cpuMaxMs), text: ms > cpuMaxMs ? text : "" }).toEqual({ ms: cpuMaxMs, text: "" });
    },
    timeLimit,
  );
});

describe("a bad one is found out", () => {
  test.each([/"(?:[^"\\]|\\.)*"|-?\b(?:NaN|Infinity)\b/g, /\s+$/, /^(a|aa|a*)+$/, /(\d+)[\d.]*x/])(
    "%p",
    (expression) => {
      expect(slowestMs(expression, lengthDefault, cpuMaxMs, shortLengths).ms).toBeGreaterThan(cpuMaxMs);
    },
    timeLimit,
  );
});
