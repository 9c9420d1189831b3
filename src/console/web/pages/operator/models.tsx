// Every model of the catalog with its price, its capabilities and whether a node serves it.
import type { VNode } from "preact";
import type { ConsoleModels } from "../../../api.ts";
import { ModelTable } from "../../parts/model-table.tsx";
import { Page } from "../../parts/page.tsx";
import { Loaded } from "../../parts/states.tsx";
import { get } from "../../request.ts";
import { useResource } from "../../resource.ts";
import { operatorNumbers } from "../../session.ts";

export function ModelsPage(): VNode {
  const models = useResource(() => get<ConsoleModels>("/models"), "models");
  return (
    <Page title="Models" lead="Prices are US dollars per 1,000,000 model tokens.">
      <SickNodes />
      <section class="card flush" aria-label="Models">
        <Loaded resource={models} lines={10}>
          {(value) => <ModelTable models={value.models} />}
        </Loaded>
      </section>
    </Page>
  );
}

/** Why models are not served, by node. */
function SickNodes(): VNode | null {
  const sick = operatorNumbers.value?.nodes.filter(({ problem }) => problem !== null) ?? [];
  if (sick.length === 0) return null;
  return (
    <>
      {sick.map(({ name, url, problem }) => (
        <p key={name} class="notice" role="status">
          <span>
            Node <strong>{name}</strong> at <code>{url}</code>: {problem}
            {problem?.endsWith("?") === true ? "" : "."}
          </span>
        </p>
      ))}
    </>
  );
}
