// The end user that a request names. The value may have any type; core/end-user.ts makes a name of it.
import { parseOutsideJson } from "../../core/outside-json.ts";

type Fields = Readonly<Record<string, unknown>>;

/** `safety_identifier` replaced `user`, which nearly all programs still send. */
export function openAiEndUser(body: object): unknown {
  const { safety_identifier, user } = body as Fields;
  return typeof safety_identifier === "string" && safety_identifier !== "" ? safety_identifier : user;
}

/** `metadata.user_id`. Claude Code puts device, account and session into it: one end user, not one per session. */
export function messagesEndUser(body: object): unknown {
  const metadata = (body as Fields)["metadata"];
  if (typeof metadata !== "object" || metadata === null) return null;
  const id = (metadata as Fields)["user_id"];
  if (typeof id !== "string" || id.length > agentIdMaxLength) return id;
  if (id.startsWith("{")) return ofJson(id);
  const session = id.lastIndexOf("_session_");
  return id.startsWith("user_") && session > 0 ? id.slice(0, session) : id;
}

/** Claude Code sends 200 characters. */
const agentIdMaxLength = 2_000;

function ofJson(id: string): unknown {
  try {
    const { account_uuid, device_id } = parseOutsideJson(id) as Fields;
    return [account_uuid, device_id].find((part) => typeof part === "string" && part !== "") ?? id;
  } catch {
    return id; // it only begins like JSON
  }
}
