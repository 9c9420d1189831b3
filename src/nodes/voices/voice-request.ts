// Writes the request for a transcription or for speech: a form with the file from the disk, or JSON.
import { randomUUID } from "node:crypto";
import type { Voice } from "../../core/types.ts";
import type { RequestPart } from "../client/exchange.ts";

type VoiceRequest = Readonly<{ path: string; type: string; bytes: number; body: readonly RequestPart[] }>;

/** `path`: below the node's base address. `streams`: whether events are asked for. */
export function voiceRequest(voice: Voice, nodeModel: string, streams: boolean): VoiceRequest {
  if (voice.kind === "spoken") {
    const json = Buffer.from(JSON.stringify({ ...voice.fields, model: nodeModel }));
    return { path: "/audio/speech", type: "application/json", bytes: json.length, body: [json] };
  }
  const { file, fields, translates } = voice;
  const boundary = `tollgate-${randomUUID()}`;
  const own = [["model", nodeModel], ...fields.filter(([name]) => name !== "model" && name !== "stream")] as const;
  const asked = streams ? [...own, ["stream", "true"] as const] : own;
  const part = (name: string, more = ""): string =>
    `--${boundary}\r\ncontent-disposition: form-data; name="${escaped(name)}"${more}\r\n`;
  const head =
    asked.map(([name, value]) => `${part(name)}\r\n${value}\r\n`).join("") +
    `${part("file", `; filename="${escaped(file.name)}"`)}content-type: application/octet-stream\r\n\r\n`;
  const [start, end] = [Buffer.from(head), Buffer.from(`\r\n--${boundary}--\r\n`)];
  return {
    path: translates ? "/audio/translations" : "/audio/transcriptions",
    type: `multipart/form-data; boundary=${boundary}`,
    bytes: start.length + file.bytes + end.length,
    body: [start, { file, at: 0 }, end],
  };
}

/** As browsers write names in forms (HTML, "multipart/form-data encoding algorithm"). */
const escaped = (name: string): string => name.replaceAll('"', "%22").replaceAll("\r", "%0D").replaceAll("\n", "%0A");
