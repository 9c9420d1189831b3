// The webhooks that receive notices for operators, their deliveries, and a button that tests each.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { ConsoleWebhook, WebhookTest } from "../../../api/server.ts";
import { ago, count, utc } from "../../format.ts";
import { FormError } from "../../parts/field.tsx";
import { post } from "../../request.ts";
import { useAction } from "../../resource.ts";
import { Button } from "../../parts/button.tsx";
import { Fact } from "../../parts/fact.tsx";

type Props = Readonly<{ webhooks: readonly ConsoleWebhook[]; onTested: () => void }>;

export const Webhooks = ({ webhooks, onTested }: Props): VNode => (
  <section class="card stack" aria-label="Notices">
    <h2>Notices</h2>
    {webhooks.length === 0 ? (
      <p class="quiet small-text">
        No notices are sent when a node goes down, a balance runs low or a backup fails. To send them, add{" "}
        <code>[[webhooks]]</code> to the configuration.
      </p>
    ) : (
      webhooks.map((webhook) => <Webhook key={webhook.name} webhook={webhook} onTested={onTested} />)
    )}
  </section>
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
        <Button caption={action.busy ? "Testing…" : "Test"} class="button small" busy={action.busy} onClick={test} />
      </div>
      <div role="status">
        {tested !== null &&
          (tested.problem === null ? (
            <p>
              <span class="badge good">delivered</span> The webhook accepted the notice.
            </p>
          ) : (
            <p>
              <span class="badge bad">failed</span> {tested.problem}.
            </p>
          ))}
      </div>
      <FormError message={action.error} />
      <dl class="facts">
        <Fact name="Host" class="break">
          <code>{host}</code>
          <span class="quiet">
            {" "}
            · {format}, {signed ? "signed" : "not signed"}
          </span>
        </Fact>
        <Fact name="Events" class="break" value={events.join(", ")} />
        <Fact name="Since server start">
          {count(sent)} sent, {count(failed)} failed attempts, {count(dropped)} given up
          {waiting > 0 && <>, {count(waiting)} pending</>}
        </Fact>
        <Fact
          name="Last sent"
          title={lastSentAt === null ? undefined : utc(lastSentAt)}
          value={lastSentAt === null ? "–" : ago(lastSentAt)}
        />
        {webhook.problem !== null && <Fact name="Last problem" class="break" value={webhook.problem} />}
      </dl>
    </article>
  );
}
