// tollgate keys list EMAIL
import type { KeyView } from "../account/account-keys.ts";
import { type Command, folderFlags } from "./command.ts";
import { perform } from "./perform.ts";
import { formatTable } from "./table.ts";

const command: Command = {
  words: ["EMAIL"],
  flags: folderFlags,
  async run(invocation) {
    const keys = await perform(invocation, "keys list", { email: invocation.words[0]! });
    if (invocation.flags["json"] === true) console.log(JSON.stringify(keys));
    else {
      const headings = ["id", "name", "ends in", "made", "last used", "used today", "this month", "limits"];
      const cells = keys.map((key) => [
        ...[key.id, key.name, key.ending ?? "", key.created_at, key.last_used_at ?? "never"],
        ...[key.used_day ?? "", key.used_month ?? ""],
        limitsInWords(key),
      ]);
      console.log(formatTable(headings, cells));
    }
    return 0;
  },
};
export default command;

export function limitsInWords(key: KeyView): string {
  const { limit_day, limit_month, expires_at, expired, models, addresses, forwards_users, limit_end_user_day } = key;
  return [
    ...(limit_day === null ? [] : [`${limit_day} balance tokens a day`]),
    ...(limit_month === null ? [] : [`${limit_month} balance tokens a month`]),
    ...(expires_at === null ? [] : [`${expired ? "expired" : "expires"} ${expires_at}`]),
    ...(models === null ? [] : [`models ${models.join(", ")}`]),
    ...(addresses === null ? [] : [`from ${addresses.join(", ")}`]),
    ...(forwards_users ? ["names its end users"] : []),
    ...(limit_end_user_day === null ? [] : [`${limit_end_user_day} balance tokens a day for each`]),
  ].join("; ");
}
