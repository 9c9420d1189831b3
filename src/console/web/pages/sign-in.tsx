// Sign-in with a password or an identity provider, and sign-up if the server allows it.
import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { CreatedAccount } from "../../api/sign-in.ts";
import { EmailField, PasswordField } from "../parts/account-fields.tsx";
import { Door } from "../parts/door.tsx";
import { FormError } from "../parts/field.tsx";
import { ProviderButton } from "../parts/provider-button.tsx";
import { FirstKey } from "../parts/secret.tsx";
import { post } from "../request.ts";
import { useAction } from "../resource.ts";
import { navigate, place } from "../route.ts";
import { account, become, loadSession, session } from "../session.ts";
import { Button } from "../parts/button.tsx";

export function SignInPage(): VNode {
  const [created, setCreated] = useState<CreatedAccount | null>(null);
  const wantsNew = place.value.query.get("new") !== null && session.value?.sign_up === true;
  const signedInAlready = wantsNew && account.value !== null && created === null;
  useEffect(() => {
    if (signedInAlready) navigate("/", { replace: true });
  }, [signedInAlready]);
  if (created !== null) {
    return (
      <Door title="Your API key" heading="Welcome to Tollgate">
        <FirstKey email={created.email} apiKey={created.api_key} />
      </Door>
    );
  }
  const { passwords = true, provider = null, sign_up = false } = session.value ?? {};
  const { path, query } = place.value;
  const next = query.get("next") ?? (path === "/device" ? `${path}?${query}` : null);
  return (
    <Door
      title={wantsNew ? "Create an account" : "Sign in"}
      heading={wantsNew ? "Create an account" : "Sign in to Tollgate"}
    >
      {passwords && <CredentialsForm key={String(wantsNew)} isNew={wantsNew} onCreated={setCreated} />}
      {passwords && provider !== null && <p class="or">or</p>}
      {provider !== null && <ProviderButton body={next === null ? {} : { next }} primary={!passwords} />}
      {sign_up && (
        <p class="door-other">
          {wantsNew ? "Have an account already?" : "New here?"}{" "}
          <a href={wantsNew ? "/sign-in" : "/sign-in?new"}>{wantsNew ? "Sign in" : "Create an account"}</a>
        </p>
      )}
    </Door>
  );
}

/** This server sends no mail. */
const Forgotten = (): VNode => (
  <details class="small-text">
    <summary>Forgot password?</summary>
    <p class="quiet">
      Ask the operator of this server for a link that sets a new password. Operators make one on the page of your
      account or with <code>tollgate accounts password EMAIL --link</code>.
      {session.value?.provider != null &&
        ` If your account is connected with ${session.value.provider}, sign in with that instead.`}
    </p>
  </details>
);

type CredentialsProps = Readonly<{ isNew: boolean; onCreated: (created: CreatedAccount) => void }>;

function CredentialsForm({ isNew, onCreated }: CredentialsProps): VNode {
  const [email, setEmail] = useState("");
  const [password, setPassword] = useState("");
  const action = useAction();
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    void action.run(async () => {
      if (!isNew) return become(await post("/sign-in", { email, password }));
      const created = await post("/sign-up", { email, password });
      onCreated(created);
      await loadSession();
    });
  };
  return (
    <form class="card stack" onSubmit={submit}>
      <EmailField value={email} onValue={setEmail} isOwn hasFocus />
      <PasswordField value={password} onValue={setPassword} isNew={isNew} />
      <FormError message={action.error} />
      <Button
        caption={isNew ? "Create account" : "Sign in"}
        type="submit"
        class="button primary block"
        busy={action.busy}
      />
      {!isNew && <Forgotten />}
    </form>
  );
}
