// tollgate mail test: through the running server, or directly.
import { addressesOf, loadConfig } from "../config/config.ts";
import { testMail } from "../office/verbs/server.ts";
import type { Work } from "../office/work.ts";
import { deskOf } from "../server/mailing.ts";
import type { Invocation } from "./command.ts";
import { askedServer, configFlags } from "./perform.ts";
import { inputOf, tell } from "./verb-input.ts";

export default async function sendTestMail(invocation: Invocation): Promise<number> {
  const { flags, environment } = invocation;
  const wanted = inputOf(testMail, invocation);
  const answered = await askedServer(invocation, testMail.name, wanted);
  const asked = { actor: { kind: "shell", user: "" }, input: wanted, progress: () => {} } as const;
  const sent = answered === null ? await testMail.run(await workHere(), asked) : answered.result;
  tell(invocation, testMail, wanted, sent as Awaited<ReturnType<typeof testMail.run>>);
  return 0;

  /** It asks for nothing but the mail. */
  async function workHere(): Promise<Work> {
    const config = await loadConfig(configFlags(flags), environment);
    const { mail } = config;
    const { baseUrl } = addressesOf(config, config.port);
    return { mail: mail === null ? null : deskOf(mail, baseUrl, new Uint8Array()) } as Work;
  }
}
