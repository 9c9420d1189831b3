// The button that leaves for the identity provider.
import type { VNode } from "preact";
import type { ProviderStart } from "../../api/sign-in.ts";
import { post } from "../request.ts";
import { useAction } from "../resource.ts";
import { session } from "../session.ts";
import { FormError } from "./field.tsx";
import { Button } from "./button.tsx";
import { t, type TextKey } from "../texts.ts";

type ProviderButtonProps = Readonly<{
  body: ProviderStart;
  words?: TextKey;
  primary?: boolean;
  block?: boolean;
}>;

export function ProviderButton({
  body,
  words = "provider.continue",
  primary = false,
  block = true,
}: ProviderButtonProps): VNode {
  const action = useAction();
  const leave = (): void =>
    void action.run(async () => {
      const { url } = await post("/provider/start", body);
      location.assign(url);
      await new Promise(() => {}); // the button stays busy until the page is gone
    });
  return (
    <div class="stack">
      <div>
        <Button
          caption={t(words, { provider: session.value?.provider ?? "" })}
          class={`button ${primary ? "primary" : ""} ${block ? "block" : ""}`}
          busy={action.busy}
          onClick={leave}
        />
      </div>
      <FormError message={action.error} />
    </div>
  );
}
