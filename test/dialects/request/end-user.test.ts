// For whom bodies say that they are, in the fields of each dialect.
import { expect, test } from "bun:test";
import { endUserName } from "../../../src/core/end-user.ts";
import { messagesEndUser, openAiEndUser } from "../../../src/dialects/request/end-user.ts";

test.each([
  [{ user: "ada" }, "ada"],
  [{ safety_identifier: "ada" }, "ada"],
  [{ safety_identifier: "ada", user: "old" }, "ada"],
  [{ safety_identifier: "", user: "ada" }, "ada"],
  [{ safety_identifier: { toString: 1 }, user: "ada" }, "ada"],
  [{ user: { toString: null } }, ""],
  [{ metadata: { user_id: "ada" } }, ""],
  [{}, ""],
])("%j is for %j", (body, name) => {
  expect(endUserName(openAiEndUser(body))).toBe(name);
});

const device = "0".repeat(63) + "1";
const claudeCode = (session: string, account = "") =>
  JSON.stringify({ device_id: device, account_uuid: account, session_id: session });

test.each([
  ["ada", "ada"],
  [claudeCode("a"), device],
  [claudeCode("b"), device],
  [claudeCode("a", "11111111-0000-4000-8000-000000000001"), "11111111-0000-4000-8000-000000000001"],
  ["user_abc_account_def_session_1", "user_abc_account_def"],
  ["user_abc_account_def_session_2", "user_abc_account_def"],
  ['{"not": json', '{"not": json'],
  ['{"device_id":7}', '{"device_id":7}'],
  [`{"a":${"[".repeat(900)}`, null],
  [7, ""],
  [null, ""],
])("metadata.user_id %j is for %j", (id, name) => {
  const found = endUserName(messagesEndUser({ metadata: { user_id: id } }));
  if (name === null) expect(found).toMatch(/~[0-9a-f]{24}$/);
  else expect(found).toBe(name);
});

test("metadata that is no object names nobody", () => {
  for (const metadata of [null, undefined, 7, "x", []]) expect(endUserName(messagesEndUser({ metadata }))).toBe("");
});
