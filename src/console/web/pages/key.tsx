// The key page: the default key, the named keys, and how each client uses them.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { KeyState, NewKey } from "../../api/keys.ts";
import type { ConsoleModels } from "../../api/overview.ts";
import { SnippetTabs } from "../parts/code-block.tsx";
import { AskButton } from "../parts/asking-dialogs.tsx";
import { Page } from "../parts/page.tsx";
import { FreshKey } from "../parts/secret.tsx";
import { isFirstLoad, Loaded } from "../parts/states.tsx";
import { get, post } from "../request.ts";
import { type Resource, useResource } from "../resource.ts";
import { sells, session } from "../session.ts";
import { NamedKeys } from "./named-keys.tsx";
import { quickStart } from "./quick-start.tsx";
import { Time } from "../parts/time.tsx";
import { rich, t } from "../texts.ts";
import { strong } from "../parts/inline.tsx";

export function KeyPage(): VNode {
  const state = useResource(() => get("/key"), "key");
  /** The latest key that was shown; the samples use it. */
  const [newest, setNewest] = useState<string | null>(null);
  const models = useResource(() => get("/models"), "models");
  const { id: model, context_tokens: contextTokens } = models.value?.sample ?? usualModel;
  const baseUrl = session.value?.base_url ?? location.origin;
  return (
    <Page
      title={t("menu.key")}
      lead={t(sells.value ? "key.lead_sells" : "key.lead")}
      actions={
        <a class="button" data-leaves href="/docs">
          {t("palette.reference")}
        </a>
      }
    >
      <div class="stack-large">
        <DefaultKey state={state} onMade={setNewest} />
        {/* Not before the card above, which would move them. */}
        <div hidden={isFirstLoad(state)}>
          <NamedKeys onMade={setNewest} />
        </div>
        <section class="card stack" hidden={isFirstLoad(state)}>
          <h2>{t("key.quick_start")}</h2>
          <SnippetTabs
            label={t("key.clients")}
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
    <section class="card stack" aria-label={t("key.key")}>
      {fresh !== null && <FreshKey title={t("key.new")} apiKey={fresh.api_key} label={t("key.copy_new")} />}
      <Loaded resource={state} lines={1}>
        {({ prefix, ending, created_at }) => (
          <div class="row spread">
            <div>
              <code class="key-prefix">
                {prefix}…{ending}
              </code>{" "}
              <span class="badge">{t("key.default")}</span>
              <p class="quiet small-text">{rich("key.made", { time: <Time at={created_at} /> })}</p>
            </div>
            <AskButton
              caption={t("key.regenerate")}
              title={t("key.regenerate_ask")}
              confirm={t("key.regenerate")}
              onConfirm={regenerate}
            >
              <p>{rich("key.regenerate_about", { strong })}</p>
            </AskButton>
          </div>
        )}
      </Loaded>
    </section>
  );
}
