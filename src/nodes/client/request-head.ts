// Builds the head of a request to a node. It contains none of the client's headers, because some change what an engine
// does (llama-server keeps a conversation for any client that sends its X-Conversation-Id).

/** `bodyBytes` null: no body. `type`: of a body that is not for an answer in JSON or events. The API key was checked to be a valid header value when the configuration was read. */
export function requestHead(
  method: "GET" | "POST",
  path: string,
  host: string,
  apiKey: string | null,
  bodyBytes: number | null,
  type: string | null = null,
): string {
  const authorization = apiKey === null ? "" : `authorization: Bearer ${apiKey}\r\n`;
  const body =
    bodyBytes === null ? "" : `content-type: ${type ?? "application/json"}\r\ncontent-length: ${bodyBytes}\r\n`;
  const accept = type !== null ? "*/*" : method === "POST" ? "text/event-stream" : "application/json";
  return `${method} ${path} HTTP/1.1\r\nhost: ${host}\r\nuser-agent: tollgate\r\naccept: ${accept}\r\naccept-encoding: identity\r\n${authorization}${body}\r\n`;
}
