// Checks the mail server and one's own templates, without sending anything.
import type { Config } from "../config/config.ts";
import { readTemplates } from "../notices/letter.ts";
import { MailServer } from "../notices/smtp.ts";
import { type Finding, ok, problem } from "./finding.ts";

const what = "mail";

export async function mailFindings({ mail }: Pick<Config, "mail">): Promise<readonly Finding[]> {
  if (mail === null) return [];
  const { host, port, templates } = mail;
  const found: Finding[] = [];
  try {
    const server = new MailServer(mail);
    const wrong = await server.verify().finally(() => server.close());
    found.push(wrong === null ? ok(what, `${host}:${port} lets us in`) : problem(what, `${host}:${port}: ${wrong}`));
  } catch (thrown) {
    found.push(problem(what, (thrown as Error).message));
  }
  if (templates === null) return found;
  try {
    const read = [...readTemplates(templates)];
    const wrong = read.flatMap(([file, of]) =>
      "problem" in of ? [problem(what, `the template ${file} ${of.problem}; ours is sent instead`)] : [],
    );
    return [...found, ...(wrong.length > 0 ? wrong : [ok(what, `${read.length} templates in ${templates}`)])];
  } catch (thrown) {
    return [...found, problem(what, `templates: ${(thrown as Error).message}`)];
  }
}
