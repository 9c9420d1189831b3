// tollgate accounts password: reads the password from a flag or standard input, or makes one.
import { changePassword, passwordLink } from "../office/verbs/accounts.ts";
import { type Invocation, textFlag, UsageError } from "./command.ts";
import { generatedPassword, readPassword } from "./new-password.ts";
import { perform } from "./perform.ts";
import { inputOf, tell } from "./verb-input.ts";

export default async function setPassword(invocation: Invocation): Promise<number> {
  const { flags } = invocation;
  const isGiven = textFlag(flags, "password") !== undefined;
  if (flags["link"] === true) {
    if (isGiven) throw new UsageError("choose either --password or --link");
    const wanted = inputOf(passwordLink, invocation);
    return tell(invocation, passwordLink, wanted, await perform(invocation, passwordLink, wanted));
  }
  if (flags["expires"] !== undefined) throw new UsageError("--expires is for --link: a password does not expire");
  const given = isGiven ? inputOf(changePassword, invocation).password : await readPassword();
  const wanted = inputOf(changePassword, {
    ...invocation,
    flags: { ...flags, password: given ?? generatedPassword() },
  });
  const account = await perform(invocation, changePassword, wanted);
  const made = given === null ? wanted.password : null;
  if (flags["json"] === true) {
    console.log(JSON.stringify({ ...account, password: made }));
    return 0;
  }
  if (made !== null) console.log(`${made}\nThe password is shown this once: only its hash is kept.`);
  return tell(invocation, changePassword, wanted, account);
}
