// The key page: the default key, the named keys, and how each client uses them.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { KeyState, NewKey } from "../../api/keys.ts";
import type { ConsoleModels } from "../../api/overview.ts";
import { SnippetTabs } from "../parts/code-block.tsx";
import { AskButton } from "../parts/asking-dialogs.tsx";
import { Page } from "../parts/page.tsx";
import { FreshKey } from "../parts/secret.tsx";
import { Loaded } from "../parts/states.tsx";
import { get, post } from "../request.ts";
import { type Resource, useResource } from "../resource.ts";
import { sells, session } from "../session.ts";
import { NamedKeys } from "./named-keys.tsx";
import { quickStart } from "./quick-start.tsx";
import { Time } from "../parts/time.tsx";

export function KeyPage(): VNode {
  const state = useResource(() => get("/key"), "key");
  /** The latest key that was shown; the samples use it. */
  const [newest, setNewest] = useState<string | null>(null);
  const models = useResource(() => get("/models"), "models");
  const { id: model, context_tokens: contextTokens } = models.value?.sample ?? usualModel;
  const baseUrl = session.value?.base_url ?? location.origin;
  return (
    <Page
      title="API key"
      lead={`Every key works for all endpoints${sells.value ? " and spends this account's balance" : ""}.`}
      actions={
        <a class="button" data-leaves href="/docs">
          API reference
        </a>
      }
    >
      <div class="stack-large">
        <DefaultKey state={state} onMade={setNewest} />
        <NamedKeys onMade={setNewest} />
        <section class="card stack">
          <h2>Quick start</h2>
          <SnippetTabs
            label="Clients"
            snippets={quickStart({
              baseUrl,
              key: newest ?? `sk-tg-...${state.value?.ending ?? ""}`,
              model,
              contextTokens,
            })}
          />
        </section>
      </div>
    </Page>
  );
}

/** Until the server has answered. */
const usualModel: NonNullable<ConsoleModels["sample"]> = { id: "core-3", context_tokens: 196_608 };

type DefaultKeyProps = Readonly<{ state: Resource<KeyState>; onMade: (apiKey: string) => void }>;

function DefaultKey({ state, onMade }: DefaultKeyProps): VNode {
  const [fresh, setFresh] = useState<NewKey | null>(null);
  const regenerate = async (): Promise<void> => {
    const made = await post("/key/regenerate", { confirm: true });
    setFresh(made);
    onMade(made.api_key);
    state.reload();
  };
  return (
    <section class="card stack" aria-label="Key">
      {fresh !== null && <FreshKey title="Your new key." apiKey={fresh.api_key} label="Copy the new key" />}
      <Loaded resource={state} lines={1}>
        {({ prefix, ending, created_at }) => (
          <div class="row spread">
            <div>
              <code class="key-prefix">
                {prefix}…{ending}
              </code>{" "}
              <span class="badge">default</span>
              <p class="quiet small-text">
                Made <Time at={created_at} />. Only its hash is kept here, so it cannot be shown again.
              </p>
            </div>
            <AskButton
              caption="Regenerate key"
              title="Regenerate the API key?"
              confirm="Regenerate key"
              onConfirm={regenerate}
            >
              <p>
                The current key is void <strong>at once</strong>: every program that uses it is refused until it has the
                new one. Replies in progress still finish.
              </p>
            </AskButton>
          </div>
        )}
      </Loaded>
    </section>
  );
}
