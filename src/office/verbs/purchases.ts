// Accounts' requests to operators: credit, another plan, or deletion.
import { Type } from "@sinclair/typebox";
import type { Unit } from "../../account/office.ts";
import type { PurchaseRequest } from "../../account/records.ts";
import { CommandError } from "../../core/expected-error.ts";
import { oneOf, rowsMax, rowsMaxUsual, wholeNumber } from "../fields.ts";
import { formatTable } from "../table.ts";
import { checkMayTouchOperators, verb } from "../verb.ts";

export type PurchaseView = Readonly<{
  id: number;
  account: { id: number; email: string };
  kind: PurchaseRequest["kind"];
  tokens: number | null;
  plan: string | null;
  note: string;
  state: PurchaseRequest["state"];
  created_at: string;
  decided_at: string | null;
  decision_note: string;
}>;

export async function purchaseView({ accounts }: Unit, request: PurchaseRequest): Promise<PurchaseView> {
  const { id, account, kind, tokens, plan, note, state, createdAt, decidedAt, decisionNote } = request;
  return {
    id,
    account: { id: account, email: (await accounts.record(account))?.email ?? "" },
    kind,
    tokens,
    plan,
    note,
    state,
    created_at: timeOf(createdAt),
    decided_at: decidedAt === null ? null : timeOf(decidedAt),
    decision_note: decisionNote,
  };
}

export const list = verb({
  name: "purchases list",
  summary: "List requests for credit, plans and deletion, newest first",
  fields: {
    state: Type.Optional(
      oneOf(
        ["pending", "approved", "declined", "withdrawn"],
        "Only pending, approved, declined or withdrawn requests.",
        "PENDING",
      ),
    ),
    kind: Type.Optional(
      oneOf(["credit", "plan", "deletion"], "Only requests for credit, a plan or a deletion.", "CREDIT"),
    ),
    after: Type.Optional(wholeNumber(1, "Only requests older than this one.", "ID")),
    limit: rowsMax,
  },
  scope: "read",
  async read(unit, { input: { state = null, kind = null, after, limit = rowsMaxUsual } }) {
    const found = await unit.purchases.records.requestsIn(state, after ?? Number.MAX_SAFE_INTEGER, limit, kind);
    return Promise.all(found.map((request) => purchaseView(unit, request)));
  },
  print: (requests) =>
    formatTable(
      ["id", "account", "asks for", "state", "asked", "note"],
      requests.map((request) => [
        String(request.id),
        request.account.email,
        wantedInWords(request),
        request.state,
        request.created_at,
        request.note,
      ]),
    ),
});

const decided = {
  id: wholeNumber(1, "Its number in the list.", "ID"),
  note: Type.Optional(Type.String({ maxLength: 500, description: "A note for the account.", placeholder: "TEXT" })),
};

const decision = (how: "approve" | "decline", summary: string) =>
  verb({
    name: `purchases ${how}`,
    summary,
    words: ["id"],
    fields: decided,
    scope: "people",
    async change(unit, { actor, input: { id, note = "" } }) {
      const asked = await unit.purchases.records.request(id);
      if (asked === null) throw new CommandError(`there is no request ${id}`);
      if ((await unit.accounts.record(asked.account))?.operator === true) checkMayTouchOperators(actor);
      const { request, isNew } = await unit.purchases[how](id, note);
      return { request: await purchaseView(unit, request), isNew };
    },
    audit: {
      action: `request.${how}`,
      subject: ({ request }) => request.account.id,
      detail({ input: { id, note = "" } }, { request, isNew }) {
        return isNew ? `request ${id}: ${wantedInWords(request)}${note === "" ? "" : `: ${note}`}` : null;
      },
    },
    json: ({ request }) => request,
    print: ({ request }) =>
      `Request ${request.id} of ${request.account.email} is ${request.state}: ${wantedInWords(request)}.`,
  });

export const approve = decision("approve", "Approve a request of an account");
export const decline = decision("decline", "Decline a request of an account");

export default [list, approve, decline];

const wantedInWords = ({ kind, plan, tokens }: Pick<PurchaseView, "kind" | "plan" | "tokens">): string =>
  kind === "deletion" ? kind : kind === "plan" ? `plan ${plan}` : `${tokens} balance tokens`;

const timeOf = (at: number): string => new Date(at).toISOString();
