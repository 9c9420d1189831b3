// The running server, its nodes and gateways.
import { Type } from "@sinclair/typebox";
import { checkEmail } from "../../account/people/accounts.ts";
import { CommandError } from "../../core/expected-error.ts";
import { text } from "../fields.ts";
import { reloadDetail } from "../reloaded.ts";
import { fleetVerb, verb } from "../verb.ts";
import type { DrainReport } from "../work.ts";

const nodeName = { name: text("The name of a node.", "NODE") };

export const nodes = fleetVerb({
  name: "nodes",
  summary: "List the nodes: their state, since when, and what is wrong",
  scope: "read",
  run: (fleet) => fleet.nodes(),
  print: (reports) => JSON.stringify(reports),
});

export const drain = fleetVerb({
  name: "nodes drain",
  summary: "Send no new requests to a node",
  details: "Running requests may finish.",
  words: ["name"],
  fields: nodeName,
  scope: "all",
  audit: { action: "node.drain", detail: ({ input }) => input.name },
  run: (fleet, { input }) => fleet.drain(input.name),
  print: ({ name, gateway, busy }) =>
    `${name} gets no new requests${fromGateway(gateway)}; ${busy === 0 ? "none is running there" : busy === 1 ? "1 is still running there" : `${busy} are still running there`}.`,
});

export const resume = fleetVerb({
  name: "nodes resume",
  summary: "Send requests to a drained node again",
  words: ["name"],
  fields: nodeName,
  scope: "all",
  audit: { action: "node.resume", detail: ({ input }) => input.name },
  run: (fleet, { input }) => fleet.resume(input.name),
  print: ({ name, gateway }) => `${name} gets requests${fromGateway(gateway)}.`,
});

export const gateways = fleetVerb({
  name: "gateways",
  summary: "List the gateways that share a PostgreSQL ledger",
  details: "Alive or gone, version, configuration, and shares of the nodes.",
  scope: "read",
  run: (fleet) => fleet.gateways(),
  print: (reports) => JSON.stringify(reports),
});

export const models = fleetVerb({
  name: "models",
  summary: "List the models that nodes offer and the server serves",
  details: "With names and prices, and models that no node has.",
  scope: "read",
  run: (fleet) => fleet.models(),
  print: (report) => JSON.stringify(report),
});

export const testWebhook = fleetVerb({
  name: "webhooks test",
  summary: "Post a notice to a webhook of the configuration",
  words: ["name"],
  fields: { name: text("The name of a webhook.", "WEBHOOK") },
  scope: "all",
  async run(fleet, { input: { name } }) {
    const problem = await fleet.testWebhook(name);
    return { name, sent: problem === null, problem };
  },
  print: ({ name, problem }) => (problem === null ? `${name} took a notice.` : `the webhook ${name}: ${problem}`),
});

export const testMail = verb({
  name: "mail test",
  summary: "Send a mail to an address, and say what the mail server answered",
  words: ["address"],
  fields: { address: text("An e-mail address.", "ADDRESS") },
  scope: "all",
  async run({ mail }, { input: { address } }) {
    checkEmail(address);
    if (mail === null) throw new CommandError("no mail is sent: the configuration has no [mail]");
    return { address, ...(await mail.test(address)) };
  },
  refusal: ({ problem, answer }) => (problem === null ? null : `the mail server took no mail: ${answer}`),
  print: ({ address, answer }) => `A mail to ${address} was taken: ${answer}`,
});

export const reload = fleetVerb({
  name: "reload",
  summary: "Apply the changed configuration to the running server",
  details: "Prints which changes need a restart.",
  scope: "all",
  run: (fleet) => fleet.reload(),
  audit: { action: "server.reload", detail: (_, outcome) => reloadDetail(outcome) },
  refusal: (outcome) => ("refused" in outcome ? outcome.refused : null),
  print(outcome) {
    if ("refused" in outcome) return outcome.refused;
    const { applied, needsRestart, found = [] } = outcome;
    return [
      `applied        ${applied.join(", ") || "nothing has changed"}`,
      ...(needsRestart.length > 0 ? [`needs restart  ${needsRestart.join(", ")}`] : []),
      ...found.map((node) => `found          ${node}`),
    ].join("\n");
  },
});

export const health = fleetVerb({
  name: "health",
  summary: "Exit with 0 if the server runs and accepts requests, else with 1",
  scope: "read",
  run: (fleet) => fleet.health(),
  refusal: ({ unready }) => (unready === null ? null : `the server accepts no requests: ${unready}`),
  json: ({ nodes }) => ({ ready: true, ...(nodes === null ? {} : { warning: nodes }) }),
  print: ({ nodes }) => (nodes === null ? "ready" : `ready, but ${nodes}`),
});

export const backup = verb({
  name: "backup",
  summary: "Back up the database, even while it is in use, and check the copy",
  words: ["file"],
  fields: {
    file: Type.String({ description: "Where to write the copy; it must not exist.", placeholder: "FILE", path: true }),
  },
  scope: null,
  run: ({ backup }, { input, progress }) => backup(input.file, progress),
  audit: {
    action: "server.backup",
    detail: (_, made) => backupDetail(made),
    isOptional: true,
  },
  print: ({ file, bytes, integrity }) => `${file}: ${bytes.toLocaleString("en-US")} bytes, integrity ${integrity}`,
});

export const backupDetail = ({ file, bytes }: Readonly<{ file: string; bytes: number }>): string =>
  `${file}: ${bytes} bytes, checked`;

/** With several gateways, each is drained separately. */
const fromGateway = (gateway: DrainReport["gateway"]): string =>
  gateway === undefined ? "" : ` from the gateway ${gateway}; the others continue`;

export default [nodes, drain, resume, gateways, models, testWebhook, testMail, reload, health, backup];
