// The webhooks that receive notices for operators, their deliveries, and a button that tests each.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { ConsoleWebhook, WebhookTest } from "../../../api/server.ts";
import { ago, utc } from "../../format.ts";
import { FormError } from "../../parts/field.tsx";
import { post } from "../../request.ts";
import { useAction } from "../../resource.ts";
import { Button } from "../../parts/button.tsx";
import { Card } from "../../parts/card.tsx";
import { Fact } from "../../parts/fact.tsx";
import { rich, t } from "../../texts.ts";
import { code } from "../../parts/inline.tsx";

type Props = Readonly<{ webhooks: readonly ConsoleWebhook[]; onTested: () => void }>;

export const Webhooks = ({ webhooks, onTested }: Props): VNode => (
  <Card title={t("webhooks.notices")} aria-label={t("webhooks.notices")}>
    {webhooks.length === 0 ? (
      <p class="card-text quiet">{rich("webhooks.none", { code })}</p>
    ) : (
      <div class="card-text stack">
        {webhooks.map((webhook) => (
          <Webhook key={webhook.name} webhook={webhook} onTested={onTested} />
        ))}
      </div>
    )}
  </Card>
);

function Webhook({ webhook, onTested }: Readonly<{ webhook: ConsoleWebhook; onTested: () => void }>): VNode {
  const { name, host, format, signed, events, sent, failed, dropped, waiting, last_sent_at: lastSentAt } = webhook;
  const [tested, setTested] = useState<WebhookTest | null>(null);
  const action = useAction();
  const test = (): void =>
    void action.run(async () => {
      setTested(null);
      setTested(await post("/operator/webhooks/test", { name }));
      onTested();
    });
  return (
    <article class="stack" aria-label={name}>
      <div class="row spread">
        <h3 class="break">{name}</h3>
        <Button
          caption={t(action.busy ? "webhooks.testing" : "webhooks.test")}
          class="button small"
          busy={action.busy}
          onClick={test}
        />
      </div>
      <div role="status">
        {tested !== null &&
          (tested.problem === null ? (
            <p>{rich("webhooks.delivered", { badge: (inner) => <span class="badge good">{inner}</span> })}</p>
          ) : (
            <p>
              <span class="badge bad">{t("webhooks.failed")}</span> {tested.problem}.
            </p>
          ))}
      </div>
      <FormError message={action.error} />
      <dl class="facts start">
        <Fact name={t("webhooks.host")} class="break">
          <code>{host}</code>
          <span class="quiet"> · {t(signed ? "webhooks.signed" : "webhooks.not_signed", { format })}</span>
        </Fact>
        <Fact name={t("webhooks.events")} class="break" value={events.join(", ")} />
        <Fact name={t("webhooks.since_start")} value={t("webhooks.counts", { sent, failed, dropped, waiting })} />
        <Fact
          name={t("webhooks.last_sent")}
          title={lastSentAt === null ? undefined : utc(lastSentAt)}
          value={lastSentAt === null ? "–" : ago(lastSentAt)}
        />
        {webhook.problem !== null && <Fact name={t("webhooks.last_problem")} class="break" value={webhook.problem} />}
      </dl>
    </article>
  );
}
