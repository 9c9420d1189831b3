// tollgate accounts password EMAIL [--password P | --link [--expires WHEN]]
import { systemClock } from "../core/clock.ts";
import { passwordLinkMs } from "../core/limits.ts";
import { type Command, folderFlags, type Invocation, UsageError } from "./command.ts";
import { expiryOf } from "./link-expiry.ts";
import { generatedPassword, passwordOf, readPassword } from "./new-password.ts";
import { perform } from "./perform.ts";

const command: Command = {
  words: ["EMAIL"],
  flags: { ...folderFlags, password: { type: "string" }, link: { type: "boolean" }, expires: { type: "string" } },
  async run(invocation) {
    const { words, flags } = invocation;
    if (flags["link"] === true) return makeLink(invocation);
    if (flags["expires"] !== undefined) throw new UsageError("--expires is for --link: a password does not expire");
    const given = passwordOf(flags) ?? (await readPassword());
    const password = given ?? generatedPassword();
    const account = await perform(invocation, "accounts password", { email: words[0]!, password });
    const made = given === null ? password : null;
    if (flags["json"] === true) console.log(JSON.stringify({ ...account, password: made }));
    else {
      if (made !== null) console.log(`${made}\nThe password is shown this once: only its hash is kept.`);
      console.log(`The password of ${account.email} is set; all browsers were signed out.`);
    }
    return 0;
  },
};
export default command;

async function makeLink(invocation: Invocation): Promise<number> {
  const { words, flags } = invocation;
  if (flags["password"] !== undefined) throw new UsageError("--password and --link are two ways: choose one");
  const expiresAt = expiryOf(flags, systemClock.wall(), passwordLinkMs);
  const made = await perform(invocation, "accounts password link", { email: words[0]!, expiresAt });
  if (flags["json"] === true) console.log(JSON.stringify(made));
  else {
    console.log(
      `${made.link}\nIt sets the password of ${made.email} once, until ${made.expires_at}, and is shown this once.`,
    );
  }
  return 0;
}
