// Accounts whose owners asked for their deletion: an operator deletes the account, or dismisses the request. Only the first
// page of requests, the newest, is shown.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { PurchaseRequest, PurchaseRequestsPage } from "../../../api/plan.ts";
import { ago, utc } from "../../format.ts";
import type { Resource } from "../../resource.ts";
import { account as own } from "../../session.ts";
import { DeletionDialog } from "./deletion-dialog.tsx";
import { DecisionDialog } from "./requests.tsx";

type Deciding = Readonly<{ request: PurchaseRequest; grants: boolean }>;

type RequestsProps = Readonly<{ page: Resource<PurchaseRequestsPage>; onDeleted: () => void }>;

export function DeletionRequests({ page, onDeleted }: RequestsProps): VNode | null {
  const [deciding, setDeciding] = useState<Deciding | null>(null);
  const requests = page.value?.requests ?? [];
  if (requests.length === 0) return null;
  const close = (): void => setDeciding(null);
  const decided = (): void => {
    close();
    page.reload();
  };
  return (
    <section class="card flush" aria-label="Requested deletions">
      <header>
        <h2>Requested deletions</h2>
      </header>
      <ul class="item-list">
        {requests.map((request) => (
          <li key={request.id}>
            <div class="grow">
              <p class="break">
                <strong>{request.account.email}</strong>
              </p>
              <p class="quiet small-text">
                Requested <time title={utc(request.created_at)}>{ago(request.created_at)}</time>
              </p>
            </div>
            <div class="row">
              <button
                type="button"
                class="button small"
                aria-label={`Dismiss ${request.account.email}`}
                onClick={() => setDeciding({ request, grants: false })}
              >
                Dismiss
              </button>
              <button
                type="button"
                class="button small danger-quiet"
                aria-label={`Delete ${request.account.email}`}
                disabled={request.account.id === own.value?.id}
                title={
                  request.account.id === own.value?.id ? "Another operator decides on your own account" : undefined
                }
                onClick={() => setDeciding({ request, grants: true })}
              >
                Delete
              </button>
            </div>
          </li>
        ))}
      </ul>
      {deciding?.grants === false && (
        <DecisionDialog request={deciding.request} verdict="decline" onClose={close} onDecided={decided} />
      )}
      {deciding?.grants === true && (
        <DeletionDialog
          account={deciding.request.account}
          onClose={close}
          onDeleted={() => {
            decided();
            onDeleted();
          }}
        />
      )}
    </section>
  );
}
