// The key page: when the key was made, how to get a new one, the named keys, and how each client uses them.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { NewKey } from "../../api/keys.ts";
import type { ConsoleModels } from "../../api/overview.ts";
import { ago, utc } from "../format.ts";
import { SnippetTabs } from "../parts/code-block.tsx";
import { CopyButton } from "../parts/copy-button.tsx";
import { Confirm } from "../parts/dialog.tsx";
import { Page } from "../parts/page.tsx";
import { Loaded } from "../parts/states.tsx";
import { get, post } from "../request.ts";
import { useAction, useResource } from "../resource.ts";
import { sells, session } from "../session.ts";
import { NamedKeys } from "./named-keys.tsx";
import { quickStart } from "./quick-start.tsx";

export function KeyPage(): VNode {
  const state = useResource(() => get("/key"), "key");
  const [fresh, setFresh] = useState<NewKey | null>(null);
  /** The key that was shown last; it stands in the samples. */
  const [newest, setNewest] = useState<string | null>(null);
  const [asking, setAsking] = useState(false);
  const action = useAction();
  const regenerate = async (): Promise<void> => {
    const done = await action.run(async () => {
      const made = await post("/key/regenerate", { confirm: true });
      setFresh(made);
      setNewest(made.api_key);
      state.reload();
    });
    if (done) setAsking(false);
  };
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
        <section class="card stack" aria-label="Key">
          {fresh !== null && <FreshKey fresh={fresh} />}
          <Loaded resource={state} lines={2}>
            {({ prefix, ending, created_at }) => (
              <div class="row spread">
                <div>
                  <code class="key-prefix">
                    {prefix}…{ending}
                  </code>{" "}
                  <span class="badge">default</span>
                  <p class="quiet small-text">
                    Made <time title={utc(created_at)}>{ago(created_at)}</time>. Only its hash is kept here, so it
                    cannot be shown again.
                  </p>
                </div>
                <button
                  type="button"
                  class="button"
                  onClick={() => {
                    action.clear();
                    setAsking(true);
                  }}
                >
                  Regenerate key
                </button>
              </div>
            )}
          </Loaded>
        </section>
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
      {asking && (
        <Confirm
          title="Regenerate the API key?"
          confirm="Regenerate key"
          action={action}
          onConfirm={() => void regenerate()}
          onClose={() => setAsking(false)}
        >
          <p>
            The current key is void <strong>at once</strong>: every program that uses it is refused until it has the new
            one. Replies in progress still finish.
          </p>
        </Confirm>
      )}
    </Page>
  );
}

/** Until the server has told. */
const usualModel: NonNullable<ConsoleModels["sample"]> = { id: "core-3", context_tokens: 196_608 };

const FreshKey = ({ fresh }: { fresh: NewKey }): VNode => (
  <div class="fresh-key" role="status">
    <p>
      <strong>Your new key.</strong> It is shown only once: copy it now.
    </p>
    <div class="secret">
      <code data-secret>{fresh.api_key}</code>
      <CopyButton text={fresh.api_key} label="Copy the new key" caption="Copy" />
    </div>
  </div>
);
