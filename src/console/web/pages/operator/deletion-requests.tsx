// Accounts whose owners want them deleted: granted by the deletion itself, or dismissed. Nothing where nobody does.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { PurchaseRequest, PurchaseRequestsPage } from "../../../api.ts";
import { ago, utc } from "../../format.ts";
import { Pager } from "../../parts/pager.tsx";
import { get } from "../../request.ts";
import { useResource } from "../../resource.ts";
import { account as own } from "../../session.ts";
import { DeletionDialog } from "./account-sheet.tsx";
import { DecisionDialog } from "./requests.tsx";

type Deciding = Readonly<{ request: PurchaseRequest; grants: boolean }>;

export function DeletionRequests({ onDeleted }: { onDeleted: () => void }): VNode | null {
  const [cursors, setCursors] = useState<readonly string[]>([]);
  const [deciding, setDeciding] = useState<Deciding | null>(null);
  const after = cursors.at(-1);
  const page = useResource(
    () => get<PurchaseRequestsPage>("/operator/requests", { state: "pending", kind: "deletion", after }),
    String(after),
  );
  if (page.value === null || (page.value.requests.length === 0 && after === undefined)) return null;
  const close = (): void => setDeciding(null);
  const decided = (): void => {
    close();
    page.reload();
  };
  return (
    <section class="card flush" aria-label="Deletions that owners ask for">
      <header>
        <h2>Want to be deleted</h2>
      </header>
      <ul class="item-list">
        {page.value.requests.map((request) => (
          <li key={request.id}>
            <div class="grow">
              <p class="break">
                <strong>{request.account.email}</strong>
              </p>
              <p class="quiet small-text">
                Asked <time title={utc(request.created_at)}>{ago(request.created_at)}</time>
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
      <Pager label="Pages of deletions" cursors={cursors} next={page.value.next} onMove={setCursors} />
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
