// Requests of accounts for credit and plan changes, which operators approve or decline here.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { PurchaseRequest } from "../../../api/plan.ts";
import { AccountLink } from "../../parts/account-link.tsx";
import { Choice } from "../../parts/choice.tsx";
import { cursorAsked, type DataColumn, DataTable } from "../../parts/data-table.tsx";
import { FormDialog } from "../../parts/asking-dialogs.tsx";
import { LongField } from "../../parts/field.tsx";
import { Page } from "../../parts/page.tsx";
import { requestTitle, StateBadge } from "../../parts/purchase-request.tsx";
import { Empty, Loaded } from "../../parts/states.tsx";
import { toast } from "../../parts/toasts.tsx";
import { get, post, search } from "../../request.ts";
import { useResource } from "../../resource.ts";
import { changeQuery, place } from "../../route.ts";
import { sells } from "../../session.ts";
import { Time } from "../../parts/time.tsx";
import { Button } from "../../parts/button.tsx";
import { rich, t } from "../../texts.ts";

const states = ["pending", "approved", "declined", "withdrawn"] as const;
type State = (typeof states)[number];
type Verdict = "approve" | "decline";

export function RequestsPage(): VNode {
  const state = states.find((each) => each === place.value.query.get("state")) ?? "pending";
  const [deciding, setDeciding] = useState<{ request: PurchaseRequest; verdict: Verdict } | null>(null);
  const query = { state, after: cursorAsked() };
  const page = useResource(() => get("/operator/requests", query), search(query));
  const title = t(`requests.state_${state}`);
  return (
    <Page
      title={t("menu.requests")}
      lead={t(sells.value ? "requests.lead_sells" : "requests.lead")}
      actions={
        <Choice
          name={t("common.state")}
          options={
            Object.fromEntries(states.map((each) => [each, t(`requests.state_${each}`)])) as Record<State, string>
          }
          chosen={state}
          onChoose={(name) => changeQuery({ state: name === "pending" ? null : name })}
        />
      }
    >
      <section class="card flush" aria-label={title}>
        <Loaded resource={page} lines={6}>
          {({ requests, next }) =>
            requests.length === 0 && query.after === undefined ? (
              <Empty icon="requests" title={t(`requests.none_${state}`)}>
                {state === "pending" &&
                  rich(sells.value ? "requests.none_about_sells" : "requests.none_about", {
                    link: (inner) => <a href="/operator/server">{inner}</a>,
                  })}
              </Empty>
            ) : (
              <DataTable
                caption={title}
                columns={columnsOf((request, verdict) => setDeciding({ request, verdict }))}
                rows={requests}
                next={next}
                rowKey={({ id }) => id}
                first=""
              />
            )
          }
        </Loaded>
      </section>
      {deciding !== null && (
        <DecisionDialog
          {...deciding}
          onClose={() => setDeciding(null)}
          onDecided={() => {
            setDeciding(null);
            page.reload();
          }}
        />
      )}
    </Page>
  );
}

type Decide = (request: PurchaseRequest, verdict: Verdict) => void;

const columnsOf = (onDecide: Decide): readonly DataColumn<PurchaseRequest>[] => [
  {
    ...{ id: "account", name: "common.account", look: "parted" },
    cell: ({ account: { email } }) => <AccountLink name={email} />,
  },
  { id: "wish", name: "requests.wish", look: "parted", cell: requestTitle },
  { id: "time", name: "common.made", look: "nowrap quiet", cell: (request) => <Time at={request.created_at} /> },
  {
    ...{ id: "notes", name: "requests.notes", look: "break quiet small-text" },
    cell: ({ note, decision_note: answer }) => (
      <>
        {note !== "" && <p>{t("requests.note", { note })}</p>}
        {answer !== "" && <p>{t("requests.answer", { note: answer })}</p>}
      </>
    ),
  },
  {
    ...{ id: "state", name: "common.state", isActions: true },
    cell: (request) =>
      request.state === "pending" ? (
        <Verdicts request={request} onDecide={onDecide} />
      ) : (
        <StateBadge state={request.state} />
      ),
  },
];

const Verdicts = ({ request, onDecide }: Readonly<{ request: PurchaseRequest; onDecide: Decide }>): VNode => (
  <>
    <Button
      caption={t("requests.decline")}
      class="button small"
      aria-label={t("requests.decline_of", { email: request.account.email })}
      onClick={() => onDecide(request, "decline")}
    />{" "}
    {request.kind === "deletion" ? (
      <a class="button small" href="/operator/accounts">
        {t("requests.see_accounts")}
      </a>
    ) : (
      <Button
        caption={t("requests.approve")}
        class="button small primary"
        aria-label={t("requests.approve_of", { email: request.account.email })}
        onClick={() => onDecide(request, "approve")}
      />
    )}
  </>
);

type DecisionProps = Readonly<{
  request: PurchaseRequest;
  verdict: Verdict;
  onClose: () => void;
  onDecided: () => void;
}>;

export function DecisionDialog({ request, verdict, onClose, onDecided }: DecisionProps): VNode {
  const [note, setNote] = useState("");
  const approve = verdict === "approve";
  const decide = async (): Promise<void> => {
    const decision = note.trim() === "" ? {} : { note: note.trim() };
    await post(`/operator/requests/${request.id}/${verdict}`, decision);
    toast(t(approve ? "requests.was_approved" : "requests.was_declined", { email: request.account.email }));
    onDecided();
  };
  return (
    <FormDialog
      title={t(approve ? "requests.approve_ask" : "requests.decline_ask")}
      submit={t(approve ? "requests.approve" : "requests.decline")}
      kind={approve ? "primary" : "danger"}
      onSubmit={decide}
      onClose={onClose}
    >
      <p>
        <strong>{request.account.email}</strong>: {requestTitle(request)}
      </p>
      <p class="quiet">{t(approve ? "requests.approve_about" : "requests.decline_about")}</p>
      <LongField label={t("requests.note_field")} rows={2} maxLength={500} value={note} onValue={setNote} />
    </FormDialog>
  );
}
