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

const states = { pending: "Pending", approved: "Approved", declined: "Declined", withdrawn: "Withdrawn" };
type State = keyof typeof states;
type Verdict = "approve" | "decline";

export function RequestsPage(): VNode {
  const [state, setState] = useState<State>("pending");
  const [cursors, setCursors] = useState<readonly string[]>([]);
  const [deciding, setDeciding] = useState<{ request: PurchaseRequest; verdict: Verdict } | null>(null);
  const after = cursors.at(-1);
  const page = useResource(() => get("/operator/requests", { state, after }), `${state} ${after}`);
  return (
    <Page
      title="Requests"
      lead={`${sells.value ? "Credit, plan changes" : "Plan changes"} and deletions that accounts request.`}
      actions={
        <Choice
          name="State"
          options={states}
          chosen={state}
          onChoose={(name) => {
            setCursors([]);
            setState(name);
          }}
        />
      }
    >
      <section class="card flush" aria-label={`Requests, ${state}`}>
        <Loaded resource={page} lines={6}>
          {({ requests, next }) => (
            <>
              {requests.length === 0 && (
                <Empty icon="requests" title={state === "pending" ? "No requests to decide" : `No ${state} requests`} />
              )}
              <ul class="item-list">
                {requests.map((request) => (
                  <RequestItem
                    key={request.id}
                    request={request}
                    onDecide={(verdict) => setDeciding({ request, verdict })}
                  />
                ))}
              </ul>
              <Pager label="Pages of requests" cursors={cursors} next={next} onMove={setCursors} />
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
        {request.note !== "" && <> · “{request.note}”</>}
        {request.decision_note !== "" && <> · answer: “{request.decision_note}”</>}
      </p>
    </div>
    {request.state === "pending" ? (
      <div class="row">
        <Button
          caption="Decline"
          class="button small"
          aria-label={`Decline ${request.account.email}`}
          onClick={() => onDecide("decline")}
        />
        {request.kind === "deletion" ? (
          <a class="button small" href="/operator/accounts">
            See accounts
          </a>
        ) : (
          <Button
            caption="Approve"
            class="button small primary"
            aria-label={`Approve ${request.account.email}`}
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
    toast(`${request.account.email} was ${approve ? "approved" : "declined"}.`);
    onDecided();
  };
  return (
    <FormDialog
      title={approve ? "Approve this request?" : "Decline this request?"}
      submit={approve ? "Approve" : "Decline"}
      kind={approve ? "primary" : "danger"}
      onSubmit={decide}
      onClose={onClose}
    >
      <p>
        <strong>{request.account.email}</strong>: {requestTitle(request)}
      </p>
      <p class="quiet">
        {approve
          ? "It takes effect at once. Make sure first that the payment is settled."
          : "Nothing changes for the account; it sees that the request was declined."}
      </p>
      <LongField label="Note to the account (optional)" rows={2} maxLength={500} value={note} onValue={setNote} />
    </FormDialog>
  );
}
