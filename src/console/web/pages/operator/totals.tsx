// All accounts together: running requests, today's totals and the models used today.
import type { VNode } from "preact";
import { useRef } from "preact/hooks";
import type { OperatorTotals } from "../../../api/server.ts";
import { count, dollars } from "../../format.ts";
import { Figure } from "../../parts/figure.tsx";
import { Page } from "../../parts/page.tsx";
import { Empty, Loaded } from "../../parts/states.tsx";
import { get } from "../../request.ts";
import { useEvery, useResource } from "../../resource.ts";
import { isFreeOfCharge, operatorNumbers, sells } from "../../session.ts";
import { Card } from "../../parts/card.tsx";
import { figures, Table } from "../../parts/table.tsx";

/** How often today's totals are reloaded while requests come in. */
const refreshMs = 5_000;

/** The gateways that the sums cover; null: there is only one. Waiting requests are known for this gateway only. */
function inAll(): string | null {
  const gateways = operatorNumbers.value?.gateways;
  if (gateways === undefined) return null;
  return gateways === 1 ? "all gateways: 1" : `all ${count(gateways)} gateways`;
}

export function TotalsPage(): VNode {
  const totals = useResource(() => get("/operator/totals"), "totals");
  useRefreshWhileBusy(totals.reload);
  return (
    <Page title="Totals" lead="All accounts of this server. Days in UTC.">
      <Loaded resource={totals} lines={8}>
        {(value) => (
          <div class="stack-large">
            <section class="grid-4" aria-label="Now">
              <Figure
                name="In flight"
                value={count(operatorNumbers.value?.requests_in_flight ?? value.requests_in_flight)}
              >
                {inAll() ?? `${count(operatorNumbers.value?.waiting ?? 0)} waiting for a node`}
              </Figure>
              {sells.value && (
                <Figure name="Reserved" value={count(operatorNumbers.value?.reserved_tokens ?? value.reserved_tokens)}>
                  balance tokens of open requests{inAll() === null ? "" : `, ${inAll()}`}
                </Figure>
              )}
              <Figure name="Accounts" value={count(value.accounts)}>
                <a href="/operator/accounts">All accounts</a>
              </Figure>
              <Figure name="Requests to decide" value={count(value.pending_purchase_requests)}>
                <a href="/operator/requests">All requests</a>
              </Figure>
            </section>
            <section class="grid-4" aria-label="Today">
              <Figure name="Requests today" value={count(value.today.requests)} />
              <Figure name="Input today" value={count(value.today.input)}>
                tokens
              </Figure>
              <Figure name="Output today" value={count(value.today.output)}>
                tokens
              </Figure>
              {!isFreeOfCharge([value.today]) && (
                <Figure name="Billed today" value={count(value.today.billed_tokens)}>
                  balance tokens, worth {dollars(value.today.billed_usd)}
                </Figure>
              )}
            </section>
            <Models models={value.models} />
          </div>
        )}
      </Loaded>
    </Page>
  );
}

function Models({ models }: { models: OperatorTotals["models"] }): VNode {
  const used = models
    .filter(({ requests }) => requests > 0)
    .sort((a, b) => b.billed_tokens - a.billed_tokens || b.requests - a.requests);
  const isFree = isFreeOfCharge(used);
  return (
    <Card title="Models today" side={<a href="/operator/models">All models</a>}>
      {used.length === 0 ? (
        <Empty icon="models" title="No model was used today" />
      ) : (
        <Table columns={["Model", ...figures("Requests", ...(isFree ? [] : ["Balance tokens"]))]}>
          {used.map(({ model, requests, billed_tokens }) => (
            <tr key={model}>
              <td>{model}</td>
              <td class="number">{count(requests)}</td>
              {!isFree && <td class="number">{count(billed_tokens)}</td>}
            </tr>
          ))}
        </Table>
      )}
    </Card>
  );
}

function useRefreshWhileBusy(reload: () => void): void {
  const numbers = operatorNumbers.value;
  const seen = useRef(numbers);
  useEvery(refreshMs, () => {
    if (seen.current !== operatorNumbers.value) reload();
    seen.current = operatorNumbers.value;
  });
}
