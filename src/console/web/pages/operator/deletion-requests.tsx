// Accounts whose owners asked for their deletion, which an operator does or dismisses. Shows the newest page only.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { PurchaseRequest, PurchaseRequestsPage } from "../../../api/plan.ts";
import type { Resource } from "../../resource.ts";
import { account as own } from "../../session.ts";
import { DeletionDialog } from "./deletion-dialog.tsx";
import { DecisionDialog } from "./requests.tsx";
import { Time } from "../../parts/time.tsx";
import { Button } from "../../parts/button.tsx";
import { Card } from "../../parts/card.tsx";
import { rich, t } from "../../texts.ts";

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
    <Card title={t("deletions.title")} aria-label={t("deletions.title")}>
      <ul class="item-list">
        {requests.map((request) => (
          <li key={request.id}>
            <div class="grow">
              <p class="break">
                <strong>{request.account.email}</strong>
              </p>
              <p class="quiet small-text">{rich("deletions.requested", { time: <Time at={request.created_at} /> })}</p>
            </div>
            <div class="row">
              <Button
                caption={t("deletions.dismiss")}
                class="button small"
                aria-label={t("deletions.dismiss_of", { email: request.account.email })}
                onClick={() => setDeciding({ request, grants: false })}
              />
              <Button
                caption={t("common.delete")}
                class="button small danger-quiet"
                aria-label={t("deletions.delete_of", { email: request.account.email })}
                disabled={request.account.id === own.value?.id}
                title={request.account.id === own.value?.id ? t("deletions.own") : undefined}
                onClick={() => setDeciding({ request, grants: true })}
              />
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
    </Card>
  );
}
