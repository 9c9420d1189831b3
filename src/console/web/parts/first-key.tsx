// The key of an account that was made just now, which is shown this once.
import type { VNode } from "preact";
import { CopyButton } from "./copy-button.tsx";

type FirstKeyProps = Readonly<{ email: string; apiKey: string; next?: string }>;

export const FirstKey = ({ email, apiKey, next = "/" }: FirstKeyProps): VNode => (
  <div class="card stack">
    <p>
      This is the key of <strong>{email}</strong>. It is shown <strong>this once</strong>: keep it where you keep your
      passwords.
    </p>
    <div class="secret">
      <code>{apiKey}</code>
      <CopyButton text={apiKey} label="Copy the API key" />
    </div>
    <a class="button primary block" href={next}>
      I saved it, continue
    </a>
  </div>
);
