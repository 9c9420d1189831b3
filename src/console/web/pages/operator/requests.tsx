// Requests of accounts for credit and plan changes, which operators approve or decline here.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { PurchaseRequest } from "../../../api/plan.ts";
import { Choice } from "../../parts/choice.tsx";
import { FormDialog } from "../../parts/asking-dialogs.tsx";
import { LongField } from "../../parts/field.tsx";
import { Page } from "../../parts/page.tsx";
import { requestTitle, StateBadge } from "../../parts/purchase-request.tsx";
import { Pager } from "../../parts/pager.tsx";
import { Empty, Loaded } from "../../parts/states.tsx";
import { toast } from "../../parts/toasts.tsx";
import { get, post } from "../../request.ts";
import { useResource } from "../../resource.ts";
import { sells } from "../../session.ts";
import { Time } from "../../parts/time.tsx";
import { Button } from "../../parts/button.tsx";
import { t } from "../../texts.ts";

const states = ["pending", "approved", "declined", "withdrawn"] as const;
type State = (typeof states)[number];
type Verdict = "approve" | "decline";

export function RequestsPage(): VNode {
  const [state, setState] = useState<State>("pending");
  const [cursors, setCursors] = useState<readonly string[]>([]);
  const [deciding, setDeciding] = useState<{ request: PurchaseRequest; verdict: Verdict } | null>(null);
  const after = cursors.at(-1);
  const page = useResource(() => get("/operator/requests", { state, after }), `${state} ${after}`);
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
          onChoose={(name) => {
            setCursors([]);
            setState(name);
          }}
        />
      }
    >
      <section class="card flush" aria-label={t(`requests.state_${state}`)}>
        <Loaded resource={page} lines={6}>
          {({ requests, next }) => (
            <>
              {requests.length === 0 && <Empty icon="requests" title={t(`requests.none_${state}`)} />}
              <ul class="item-list">
                {requests.map((request) => (
                  <RequestItem
                    key={request.id}
                    request={request}
                    onDecide={(verdict) => setDeciding({ request, verdict })}
                  />
                ))}
              </ul>
              <Pager label={t("requests.pages")} cursors={cursors} next={next} onMove={setCursors} />
            </>
          )}
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

type ItemProps = Readonly<{ request: PurchaseRequest; onDecide: (verdict: Verdict) => void }>;

const RequestItem = ({ request, onDecide }: ItemProps): VNode => (
  <li>
    <div class="grow">
      <p>
        <strong>{request.account.email}</strong>: {requestTitle(request)}
      </p>
      <p class="quiet small-text">
        <Time at={request.created_at} />
        {request.note !== "" && <> · {t("requests.note", { note: request.note })}</>}
        {request.decision_note !== "" && <> · {t("requests.answer", { note: request.decision_note })}</>}
      </p>
    </div>
    {request.state === "pending" ? (
      <div class="row">
        <Button
          caption={t("requests.decline")}
          class="button small"
          aria-label={t("requests.decline_of", { email: request.account.email })}
          onClick={() => onDecide("decline")}
        />
        {request.kind === "deletion" ? (
          <a class="button small" href="/operator/accounts">
            {t("requests.see_accounts")}
          </a>
        ) : (
          <Button
            caption={t("requests.approve")}
            class="button small primary"
            aria-label={t("requests.approve_of", { email: request.account.email })}
            onClick={() => onDecide("approve")}
          />
        )}
      </div>
    ) : (
      <StateBadge state={request.state} />
    )}
  </li>
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
