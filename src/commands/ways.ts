// What the command line does beside a verb, or instead of it where no server runs. By the verb's name.
import { type FlagTable, type Invocation, nodeFlag } from "./command.ts";

type Way = Readonly<{
  flags?: FlagTable;
  load(): Promise<{ default(invocation: Invocation): Promise<number> }>;
}>;

export const ways: Readonly<Record<string, Way>> = {
  apply: {
    flags: { file: { type: "string", short: "f", placeholder: "FILE", help: "The file, TOML or JSON." } },
    load: () => import("./apply.ts"),
  },
  "accounts list": { load: () => import("./accounts-list.ts") },
  "accounts password": {
    flags: {
      link: { type: "boolean", help: "Change nothing yet: print a link, as accounts password-link does." },
      expires: { type: "string", placeholder: "WHEN", help: "When the link expires." },
    },
    load: () => import("./accounts-password.ts"),
  },
  "accounts export": { load: () => import("./account-export.ts") },
  "end-users list": { load: () => import("./end-users-list.ts") },
  "end-users export": { load: () => import("./end-user-export.ts") },
  requests: {
    flags: { follow: { type: "boolean", help: "Print new requests as they come, until interrupted." } },
    load: () => import("./requests.ts"),
  },
  nodes: { flags: nodeFlag, load: () => import("./nodes.ts") },
  "nodes drain": {
    flags: { wait: { type: "boolean", help: "Wait until the running requests have ended." } },
    load: () => import("./nodes-drain.ts"),
  },
  gateways: { load: () => import("./gateways.ts") },
  models: { flags: nodeFlag, load: () => import("./models.ts") },
  "webhooks test": { load: () => import("./webhooks-test.ts") },
  "mail test": { load: () => import("./mail-test.ts") },
  simulate: {
    flags: { svg: { type: "string", placeholder: "FILE", help: "Draw it into this file, too." } },
    load: () => import("./simulate.ts"),
  },
  backup: { load: () => import("./backup.ts") },
};
