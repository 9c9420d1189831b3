// Why a request was refused or failed, and what to do about it: for the person whose request it was. The error that the
// client got has the numbers.
import type { FailedReason } from "../core/request-log.ts";

const words: Readonly<Record<FailedReason, string>> = {
  invalid_api_key: "The API key was missing, unknown, revoked or expired.",
  malformed: "The request asks for something that cannot be served. The error that the client got names the field.",
  unreadable: "The request's body is no JSON that can be read.",
  unknown_model:
    "There is no model of that name here. The models that there are stand on the plan page and at /v1/models.",
  model_not_in_plan: "The plan does not include this model. Another plan may, or another model may do.",
  model_not_for_key: "The API key may not use this model. Use another key, or another model.",
  address_not_allowed: "The API key may not be used from that network address.",
  context_length_exceeded:
    "The conversation is longer than the model can read. Shorten it, or use a model with a larger context.",
  context_budget_exceeded:
    "The conversation and the answer that the request allows are longer than the model's context together. Allow a shorter answer, or shorten the conversation.",
  previous_response_not_found: "The earlier response that the request goes on from is not stored here anymore.",
  threads_not_kept: "Message threads are not kept here: the whole conversation must be sent.",
  not_found: "There is nothing at that address.",
  body_too_large: "The request is larger than 32 MiB.",
  file_too_large: "The file is larger than files may be, or the account's files together are.",
  storage_full: "The gateway's disk has no room for the file. Nothing was kept of it; the operator must make room.",
  text_too_long: "The text is too long to be counted.",
  unsupported_encoding: "The request's body is compressed in a way that is not understood.",
  upgrade_required: "The program asked for another protocol than a WebSocket of version 13.",
  invalid_stream_id: "The program named a stream of its WebSocket in characters that no name may have.",
  websocket_stream_limit_reached: "The program named too many streams on one WebSocket.",
  websocket_connection_limit_reached: "The program's WebSocket was open for an hour; it must open another.",
  too_many_requests:
    "The account sent more requests in a minute than its plan allows. Wait a little, or send fewer at once.",
  rate_limited:
    "The plan or the API key limits the requests or tokens of a minute. Nothing was charged. Wait a little, or send fewer at once.",
  quota_exceeded:
    "The balance did not cover what the request might cost. The day's allowance renews at 00:00 UTC; credit can be added on the plan page.",
  budget_over_quota:
    "The answer might have cost more than was left of the balance. Ask for a shorter one (max_tokens), or without a length: then it is as long as the balance allows.",
  key_quota_exceeded:
    "What the API key may use that day or month did not cover what the request might cost. Another key of the account may go on.",
  end_user_quota_exceeded:
    "What the key gives each of its users a day did not cover what the request might cost for the person for whom the program asked.",
  member_quota_exceeded:
    "What the team gives each of its members, or this one, did not cover what the request might cost. An admin of the team may raise it.",
  budget_over_member_quota:
    "The request might have cost more than the member of the team may still use. Ask for a shorter answer (max_tokens).",
  budget_over_key_quota:
    "The request might have cost more than the API key may still use. Ask for a shorter answer (max_tokens), or use another key of the account.",
  budget_over_end_user_quota:
    "The request might have cost more than the person for whom the program asked may still use that day. Ask for a shorter answer (max_tokens).",
  coder_quota_reached: "The calls of coder models of this 4-hour window are used up.",
  busy: "All places for this model were taken for too long. Try again later.",
  deadline_unmet: "The line was too long for the time that the request allowed. Nothing was charged.",
  busy_unreachable: "No machine that serves this model could be reached. Nothing was charged; try again later.",
  busy_unlisted: "No machine has this model loaded. Nothing was charged; the operator must load it.",
  model_unreachable: "No machine that serves this model could be reached. Nothing was charged; try again later.",
  model_unlisted: "No machine has this model loaded. Nothing was charged; the operator must load it.",
  model_paused:
    "An operator has taken the machines of this model out of service for a while. Nothing was charged; try again later.",
  quota_unverified: "The gateway could not read or write its books at that moment. Nothing was charged; try again.",
  node_failed: "The machine that runs the model stopped answering. Nothing was charged; try again.",
  model_unavailable: "The model was not loaded on its machine. Nothing was charged; try again later.",
  answer_misfit:
    "The model's answer did not have the requested format, twice. Another model, or a simpler schema, may do.",
  not_called: "The model did not make the tool call that the request demands. Nothing was charged.",
  stopping: "The gateway was being restarted. Nothing was charged; try again.",
  internal: "Something went wrong in the gateway; the operator's log says what. Nothing was charged.",
  left: "The program that asked closed its connection before the answer began. Nothing was charged.",
};

/** A reason of another version may be unknown here. */
export const inPlainWords = (reason: string): string =>
  Object.hasOwn(words, reason) ? words[reason as FailedReason] : "The request was not served.";
